"""The kind cluster of `make kind-up`: what it needs of this machine."""
