"""gRPC over HTTP/2, as much of it as a client of etcd needs: unary calls and streams of messages.

A ``Channel`` leads to one server and opens its ``Connection`` when it is needed. This package knows bytes and gRPC's
status codes. It must not know etcd's messages, nor retry requests: an ``RpcError`` says whether a request can have
reached the server, and the caller decides.
"""
