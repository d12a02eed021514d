"""Two campaigns next to each other, over the tasks that they share. They were not randomised together: no test."""
