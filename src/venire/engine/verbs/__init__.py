"""What the verbs of a scheduler do: within a slot, at its end, and with its settings."""
