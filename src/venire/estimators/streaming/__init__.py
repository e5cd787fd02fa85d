"""What if labels come one by one? Competences that follow a stream."""
