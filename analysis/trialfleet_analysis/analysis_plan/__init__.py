"""The default plan of analysis: from a campaign's columns and what was frozen before it ran to its findings."""
