"""How well a method finds the files that a repository's own commits changed."""
