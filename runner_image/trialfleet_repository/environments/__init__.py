"""Environments of tasks: how they are built, found and used."""
