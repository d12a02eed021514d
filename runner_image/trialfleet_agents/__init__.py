"""The agents that trialfleet drives: how each is started, what it can be given, what it did."""
