"""The recipes of docs/architecture.md: patches that are applied to a copy of the code and used."""
