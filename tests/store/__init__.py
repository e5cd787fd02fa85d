"""The plain reference of a store, in dictionaries, and the battery that every store must pass."""
