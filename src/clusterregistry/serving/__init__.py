"""The server: from the socket to the handlers.

``http`` speaks HTTP, ``chain`` has the filters in the order in which a request meets them, ``routes`` finds the
handler, ``app`` puts everything together, ``running`` runs it. Filters know requests and answers, not resources.
"""
