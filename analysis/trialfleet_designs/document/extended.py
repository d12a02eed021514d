"""What is said of a test whose campaign grew after results were seen."""

EXTENDED = "its p is not valid: reps were added after results were seen"
