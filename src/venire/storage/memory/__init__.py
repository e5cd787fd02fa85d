"""A store in dictionaries: for tests, and the plain reference."""
