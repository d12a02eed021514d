"""Several campaigns of one contrast, combined: `trialfleet combine`."""
