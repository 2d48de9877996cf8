"""The doors: each module has a function `run(session)`."""
