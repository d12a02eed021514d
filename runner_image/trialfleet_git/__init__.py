"""How this project reads repositories of others: nothing that a repository brings decides what git does.

Imports nothing of ours: the predictor of edit targets, which stands alone, uses it too."""
