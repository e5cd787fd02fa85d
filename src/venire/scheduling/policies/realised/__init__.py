"""Realised utility: decide by what the labels so far have shown."""
