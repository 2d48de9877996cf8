# Writes the C examples of a page to folder/example1.inc, folder/example2.inc, ...
/^```c$/ { ++n; inside = 1; next }
/^```$/ { inside = 0 }
inside { print > (folder "/example" n ".inc") }
