"""The records of the ledger: the interface between controller, runner and analysis."""
