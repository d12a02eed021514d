"""A trend over conditions of ascending doses."""
