"""The tidy tables: what every number of a report is made of."""
