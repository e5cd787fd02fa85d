"""What everything that speaks HTTP shares: the client, webhooks, judges, models, connectors.

    retries       Retry-After, backoff, what a failed response means; limits kept on our side
    connections   requests with limits of time and size, JSON APIs, keys

Nothing here follows a redirect, and no error shows a key.
"""
