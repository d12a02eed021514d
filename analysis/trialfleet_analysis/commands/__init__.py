"""The commands that read results, one module each: imported only when called."""
