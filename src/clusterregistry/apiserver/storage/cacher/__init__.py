"""The cache: the storage interface around any store, with all keys of one prefix in memory.

It is fed only by the store's committed events and serves nothing that is not durable. It must not know the engine
behind it, nor what the bytes mean: what is derived from a value is kept in ``KeyValue.memo``, as long as it is cached.
"""

from clusterregistry.apiserver.storage.cacher.cache import Cacher

__all__ = ["Cacher"]
