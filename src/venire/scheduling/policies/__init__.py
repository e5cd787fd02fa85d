"""Other policies than Algorithm 1; the private parts of each sit beside it."""
