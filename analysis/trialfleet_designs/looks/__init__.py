"""Declared looks: the exact group-sequential test."""
