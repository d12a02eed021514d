"""Extraction of facts from a syntax tree, per language."""
