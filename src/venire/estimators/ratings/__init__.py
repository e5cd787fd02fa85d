"""What if classes have an order? Ordinal labels, numbers, comparisons."""
