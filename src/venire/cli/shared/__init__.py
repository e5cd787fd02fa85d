"""What several commands share: options, tables, stores, worlds, and what is printed."""
