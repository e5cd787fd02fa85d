"""Baselines: random, round-robin, fixed overlap, everyone."""
