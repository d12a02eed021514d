"""Contexts that a program writes: from the tree before the fix, once, and the same for every rep."""
