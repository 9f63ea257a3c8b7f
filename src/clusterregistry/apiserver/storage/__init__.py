"""Storage: a revisioned key-value store with watches, like etcd.

``interface`` defines the store, ``errors`` its exceptions. The engines (``sqlite``, ``etcd``) and the ``cacher`` around
them implement the interface and do not import each other. Values are bytes; only ``object_bytes`` knows that they are
JSON objects.
"""
