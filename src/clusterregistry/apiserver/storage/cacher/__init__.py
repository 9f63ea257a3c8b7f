"""The cache: the storage port again, around any store, with all keys of one prefix in memory.

It is fed only by the store's committed events and serves nothing that is not durable. It must not know
which engine is behind it, nor what the bytes mean; what others derive from a value they keep in the
``memo`` of its KeyValue, which lives here as long as the value is of use.
"""

from clusterregistry.apiserver.storage.cacher.cache import Cacher

__all__ = ["Cacher"]
