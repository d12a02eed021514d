"""Hosting the core: one supervisor, one dispatcher per shard, in threads of this process or as actors of Ray."""
