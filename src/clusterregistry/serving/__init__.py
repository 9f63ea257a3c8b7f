"""The server: from the socket to the handlers.

``chain`` has the filters in the order in which a request meets them, ``routes`` finds the handler,
``asgi`` and ``protocol`` join both to uvicorn, ``app`` puts everything together, ``running`` runs it.
Filters know requests and answers, not resources.
"""
