"""What comparisons of conditions are made of, and contrasts."""
