"""Looking after a store: verify, export, archive, prove erasure."""
