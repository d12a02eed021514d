"""What a syntax tree says about a file, per language."""
