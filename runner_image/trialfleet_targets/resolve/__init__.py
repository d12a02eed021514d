"""From facts of files to edges between them."""
