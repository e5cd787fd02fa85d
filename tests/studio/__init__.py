"""Label Studio for tests: a double of its API, the real one, and people who annotate."""
