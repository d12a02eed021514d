"""The report as one HTML file: no script, no network, everything that others wrote escaped by the serialiser."""
