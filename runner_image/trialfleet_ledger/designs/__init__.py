"""What campaigns declare as their primary result, and the records of what was decided. Read by pods."""
