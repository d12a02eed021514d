"""The dependency graph of files: proximity, betweenness, communities."""
