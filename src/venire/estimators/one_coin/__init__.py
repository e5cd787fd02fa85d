"""How good is each labeler, by one number? The paper's Algorithm 3."""
