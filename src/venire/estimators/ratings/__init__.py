"""Ordinal labels, numbers and pairwise comparisons; agreement between labelers."""
