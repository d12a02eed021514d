"""Ways by which a condition's context reaches an agent."""
