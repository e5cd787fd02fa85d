"""Look ahead: plan the next slots, carry out the first."""
