"""The storage engine for several replicas: etcd 3.4 or newer, over gRPC.

``store.EtcdStorage`` implements the storage interface. It keeps no objects in memory; that is the cacher's part. Errors
of gRPC (``http2.streams.RpcError``) never leave this package. It imports none of its modules here, so that a server on
SQLite does not load them.
"""
