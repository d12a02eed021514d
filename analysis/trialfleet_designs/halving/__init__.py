"""Halving of four treatments."""
