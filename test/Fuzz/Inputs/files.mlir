// Looks at the file, and at nothing in it.
func.func @nothing() {
  return
}

func.func @identity(
    %x: tensor<?x?xf32> {varlen.name = "x"},
    %n: tensor<?xi32> {varlen.name = "n"})
    -> (tensor<?x?xf32> {varlen.name = "x"}, tensor<?xi32> {varlen.name = "n"}) {
  return %x, %n : tensor<?x?xf32>, tensor<?xi32>
}
