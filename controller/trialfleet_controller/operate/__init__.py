"""Operating a campaign on Kubernetes from the command line: looked at before, cleaned up after."""
