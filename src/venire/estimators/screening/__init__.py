"""Whose labels count: copies of each other, and labelers who never look."""
