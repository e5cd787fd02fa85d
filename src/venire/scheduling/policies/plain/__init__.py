"""Policies in ordinary Python: what they are shown, and what calls them."""
