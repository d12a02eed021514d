"""One attempt at one trial: `python -m trialfleet_runner.attempt GRANTS.json`."""
