"""The engine for many replicas: etcd 3.4 or newer, over gRPC.

Several servers may use one etcd at once. This package speaks etcd's protocol and implements the port
(``store.EtcdStorage``); it keeps no objects, which is the cacher's part. Errors of gRPC (``http2.statuses.RpcError``)
never leave it. None of its modules is imported here: who keeps everything in SQLite does without them.
"""
