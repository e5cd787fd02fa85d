"""Labels that come in batches: competences that follow a stream."""
