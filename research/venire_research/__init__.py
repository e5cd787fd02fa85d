"""Experiments: one module or folder for each, with its configuration and its numbers."""
