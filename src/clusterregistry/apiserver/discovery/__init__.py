"""Discovery and OpenAPI documents, generated from the resource definitions.

Everything here is a function of the resources that the server serves. Documents are built and encoded once, since that
list never changes while the server runs. ``endpoints`` serves them by path. This package must not know any kind by
name, read or write objects, or know sockets: it returns status, headers and bytes.
"""
