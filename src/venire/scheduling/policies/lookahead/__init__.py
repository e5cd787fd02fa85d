"""Look ahead: plan the slots to come, carry out the first."""
