"""Status controllers: clients of the API, which observe clusters and write what they found to the registry.

Nothing here imports the server. ``observer`` is shared with the agent and with Optikon.
"""
