"""The viewer: pages about one campaign, made from its tables, records and bundles, served on loopback."""
