"""Cheaper and not worse: a metric and a margin of pass rates, declared as one question."""
