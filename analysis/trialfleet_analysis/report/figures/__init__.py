"""What the report draws, as values: a page, a picture and a table of numbers are made of the same ones."""
