"""What is kept of a schedule: record arrays, and what every policy does to them."""
