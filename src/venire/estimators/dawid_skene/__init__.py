"""A confusion matrix for each labeler: Dawid and Skene's model, and hidden types of item."""
