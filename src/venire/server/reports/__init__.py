"""Reports about a stream: events, explanations, the skills of labelers."""
