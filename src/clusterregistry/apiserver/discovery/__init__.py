"""What the server says of itself: groups, resources and OpenAPI, generated from the resource definitions.

Everything here is a function of the list of resources that the server serves; documents are built and
encoded once, since that list never changes while the server runs. ``endpoints`` puts them behind their
paths. This package must not know any kind by name, read or write objects, or speak to sockets: it gives
status, headers and bytes, and ``serving`` sends them.
"""
