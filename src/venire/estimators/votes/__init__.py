"""Votes: majority, weighted majority, and a vote that learns a little."""
