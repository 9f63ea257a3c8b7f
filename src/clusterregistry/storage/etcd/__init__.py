"""The engine for many replicas: etcd 3.4 or newer, over gRPC.

Several servers may use one etcd at once. This package speaks etcd's protocol and implements the port
(``store.EtcdStorage``); it keeps no objects, which is the cacher's part. grpc's errors never leave it. None of its
modules is imported here: grpc takes its time, and who keeps everything in SQLite does without.
"""

import os

# grpc's own log is of no use to an operator: what fails is told by our errors. It must be said before the import.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
