"""Commands for campaigns on Kubernetes: checks before a campaign, its controller's Job, clean-up after it."""
