"""The commands that need no other package, one module each."""
