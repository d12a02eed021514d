"""What `trialfleet power` answers: questions of a planner as values, and their answers for people and machines."""
