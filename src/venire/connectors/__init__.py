"""Labelers and sources that people have already: LLM judges, people in Label Studio.

Each connector is a package of its own with an extra of its own, imported when it is used.
"""
