"""gRPC over HTTP/2, as much of it as a client of etcd needs: calls with one answer, and streams in both directions.

A ``Channel`` leads to one server and makes its ``Connection`` when it is needed. This package knows bytes and gRPC's
statuses; it must know nothing of etcd's messages, nor decide what is sent again: an ``RpcError`` says whether a request
can have reached the server, and others draw their conclusions.
"""
