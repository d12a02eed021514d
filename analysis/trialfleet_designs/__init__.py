"""Designs of campaigns: what each decides, finds and says. Pure."""
