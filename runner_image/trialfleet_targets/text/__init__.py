"""Words of code and of requests, and how well they match."""
