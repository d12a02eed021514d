"""What a campaign is expected to find and to take, by its design."""
