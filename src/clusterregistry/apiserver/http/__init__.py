"""An HTTP/1.1 server on httptools. It imports nothing else of this project and knows nothing of what is served.

``parser`` makes requests of bytes, ``response_writer`` makes bytes of responses, ``connection`` does both for one
client, in order. ``listener`` accepts clients and ``server`` has their connections.
"""
