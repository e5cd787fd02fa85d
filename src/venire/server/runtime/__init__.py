"""What keeps streams going: the runtime, the ticker, health."""
