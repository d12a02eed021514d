"""What is known about a repository: its files, its git, its environments and its test runs."""
