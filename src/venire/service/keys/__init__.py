"""Who may ask: API keys, and sessions of browsers."""
