"""The report as sections of tables: described once here, rendered by every format."""
