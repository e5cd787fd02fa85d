"""One competence for each labeler: the paper's Algorithm 3."""
