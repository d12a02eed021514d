"""Tokens of code and of requests, and lexical scores."""
