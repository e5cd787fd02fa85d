"""The state of a schedule: record arrays, and what every policy does with them."""
