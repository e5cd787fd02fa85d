"""Whose labels count? Copies of each other, and those who never look."""
