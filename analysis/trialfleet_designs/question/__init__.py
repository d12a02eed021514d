"""A question within a declared margin: not worse, or equivalent."""
