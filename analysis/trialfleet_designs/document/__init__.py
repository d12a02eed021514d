"""Figures and tables of reports, as values."""
