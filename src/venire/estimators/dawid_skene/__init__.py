"""How does each labeler err? Dawid and Skene's confusion matrices."""
