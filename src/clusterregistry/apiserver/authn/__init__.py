"""Authentication: finds out who sends a request.

A port (``interface``), one implementation a file, and ``union``, which writes down their order. Authenticators
decide on the identity only; what it may do is ``authz``. They never read a body, never write, and know neither
routes nor resources.
"""
