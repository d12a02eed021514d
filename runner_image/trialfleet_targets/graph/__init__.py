"""Files and what they depend on: who is close to whom, who is depended upon, who stands between."""
