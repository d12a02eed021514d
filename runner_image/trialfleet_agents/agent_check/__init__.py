"""Measures which deliveries reach the model of an agent: the real program against a server that plays a script."""
