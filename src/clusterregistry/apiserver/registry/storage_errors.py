"""Storage errors as API errors. Every class of ``storage.errors`` has its line here; a test makes sure."""

from __future__ import annotations

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.storage import errors as storage_errors
from clusterregistry.apiserver.storage.errors import StorageError

TOO_OLD = "The resourceVersion for the provided list is too old."


def api_error(error: StorageError) -> errors.APIError:
    """What a client is told of a storage error that no caller expected."""
    match error:
        case storage_errors.RevisionCompacted():
            return errors.gone(TOO_OLD)
        case storage_errors.RevisionInFuture(requested=requested, current=current):
            return errors.resource_version_too_large(requested, current)
        case storage_errors.ValueTooLarge(size=size):
            # kube-apiserver lets etcd's words through as a 500, which reads as if it were worth another try.
            return errors.request_entity_too_large(
                f"the object takes {size} bytes, which is more than the storage takes"
            )
        case storage_errors.CorruptObject(reason=reason):
            return errors.storage_read_error(f"what is stored cannot be read: {reason}")  # the store names the object
        case storage_errors.KeyExists() | storage_errors.RevisionConflict() | storage_errors.KeyNotFound():
            # The store handles these where they can happen; one that comes here lost a race it may retry.
            return errors.failure(409, "Conflict", f"the write met another one; try again: {error}")
        case _:
            return errors.service_unavailable(f"the storage cannot answer now: {error}")
