"""Exits and revisions sent to others: deliveries, signatures, targets."""
