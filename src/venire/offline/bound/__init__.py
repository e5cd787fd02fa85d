"""How much could anyone have earned at most? Upper bounds from prices."""
