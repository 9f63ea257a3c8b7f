"""Storage errors as API errors. Every class of ``storage.errors`` has its line here; a test makes sure."""

from __future__ import annotations

from collections.abc import Sequence

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.field_errors import FieldError, shown
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.storage import errors as storage_errors
from clusterregistry.apiserver.storage.errors import CorruptObject, StorageError

LARGEST = 1536 * 1024 - 1024
"""Bytes of a stored object, whatever stores it: etcd takes requests of 1.5 MiB, and some of that is for the key."""

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


class ResourceErrors:
    """Those of one resource, whose keys in the storage begin with ``prefix``."""

    def __init__(self, resource: Resource, prefix: str) -> None:
        self._resource, self._prefix = resource, prefix

    def not_found(self, name: str) -> APIError:
        return errors.not_found(group=self._resource.group, resource=self._resource.plural, name=name)

    def corrupt(self, name: str, error: CorruptObject) -> APIError:
        """Of everything but a delete, for an object that is stored and cannot be read."""
        message = (
            f"{self._resource.qualified_name} {shown(name)} cannot be read from the storage: {error.reason}; "
            "delete it to have the name free again"
        )
        cause = {"reason": "UnexpectedServerResponse", "message": str(error)}
        details = {"name": name, "group": self._resource.group, "kind": self._resource.plural, "causes": [cause]}
        return errors.storage_read_error(message, details)

    def contended(self, name: str) -> APIError:
        """Of a write that met another one each time it was tried."""
        return self._conflict(name, "others change the object all the time; try again")

    def already_exists(self, name: str, *, being_deleted: bool, corrupt: CorruptObject | None = None) -> APIError:
        error = errors.already_exists(group=self._resource.group, resource=self._resource.plural, name=name)
        if corrupt:
            error.status["message"] += f", but cannot be read from the storage ({corrupt.reason}): delete it first"
        if being_deleted:
            error.status["message"] = f"object is being deleted: {error.status['message']}"
        return error

    def invalid(self, name: str, wrong: Sequence[FieldError]) -> APIError:
        return errors.invalid(group=self._resource.group, kind=self._resource.kind, name=name, errors=list(wrong))

    def missing_version(self, name: str) -> APIError:
        """Of an update that does not say what it is based on."""
        detail = "Invalid value: 0: must be specified for an update"
        return self.invalid(name, [FieldError("metadata.resourceVersion", "FieldValueInvalid", detail)])

    def modified(self, name: str) -> APIError:
        """Of an update that is based on another version than the present one."""
        return self._conflict(name, _MODIFIED)

    def another_uid(self, name: str, *, wanted: str, found: str) -> APIError:
        """Of an update that is meant for another object of that name."""
        # In the words that kube-apiserver's storage has for it; tools look for them.
        detail = (
            f"StorageError: invalid object, Code: 4, Key: {self._prefix}{name}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        )
        return self._conflict(name, detail)

    def unmet_precondition(self, name: str, detail: str) -> APIError:
        """Of a delete."""
        # The kind, not the resource: so says kube-apiserver.
        return errors.conflict(group=self._resource.group, resource=self._resource.kind, name=name, detail=detail)

    def too_large(self, size: int) -> APIError:
        """Of an object that no storage has to take."""
        kind = self._resource.kind
        return errors.request_entity_too_large(f"the {kind} takes {size} bytes as it is stored, the limit is {LARGEST}")

    def _conflict(self, name: str, detail: str) -> APIError:
        return errors.conflict(group=self._resource.group, resource=self._resource.plural, name=name, detail=detail)


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
