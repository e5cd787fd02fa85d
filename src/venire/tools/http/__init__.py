"""What everything that speaks HTTP shares: the client, webhooks, judges, models, connectors.

    retries       Retry-After, backoff, and what a failed response means
    pacing        limits kept on our side, and how long a request is worth waiting for
    connections   requests with limits of time and size, JSON APIs, keys

Nothing here follows a redirect, and no error shows a key.
"""
