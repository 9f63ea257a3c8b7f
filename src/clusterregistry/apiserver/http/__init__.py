"""HTTP/1.1 between sockets and the chain: bytes become a Request, an Answer becomes bytes.

``reading`` makes requests of bytes, ``writing`` makes bytes of answers, ``connection`` does both for one client, in
order, and ``server`` has the connections. The parser itself is httptools. Nothing here knows what is served.
"""
