"""What can be told of a stream: events, explanations, how good labelers are."""
