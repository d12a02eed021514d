"""Campaigns without a fixed end: bets on pairs."""
