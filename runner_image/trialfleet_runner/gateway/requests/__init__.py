"""Fields that requests may have, by API: what is not listed is refused."""
