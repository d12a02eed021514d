"""A declared contrast of cost, tokens, turns or time."""
