"""One stream in memory: the engine, its clock, and what is kept beside it."""
