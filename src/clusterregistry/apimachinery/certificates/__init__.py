"""Keys and certificates as values: issued and inspected. ``cryptography`` is a slow import, so import this late."""
