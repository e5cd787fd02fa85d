"""Webhooks: deliveries of exits and revisions, retries, signatures, targets."""
