"""Turns storage errors into API errors, and makes the API errors of the store.

Every class of ``storage.errors`` has its case in ``api_error``; a test makes sure. ``watch_error`` differs in one case.
The errors that name an object are made by ``ResourceErrors``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError
from clusterregistry.apimachinery.meta.field_errors import FieldError, shown
from clusterregistry.apiserver.registry.resource import Resource
from clusterregistry.apiserver.storage import errors as storage_errors
from clusterregistry.apiserver.storage.errors import CorruptObject, StorageError
from clusterregistry.apiserver.storage.object_bytes import name_of_key

LARGEST = 1536 * 1024 - 1024
"""Bytes of a stored object, on any storage: etcd takes requests of 1.5 MiB, and some of that is for the key."""

_NAMED = 10
"""Objects that a message names."""

_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def api_error(error: StorageError) -> APIError:
    """The API error for a storage error that the store does not handle itself."""
    match error:
        case storage_errors.RevisionCompacted():
            return errors.gone("The resourceVersion for the provided list is too old.")
        case storage_errors.RevisionInFuture(requested=requested, current=current):
            return errors.resource_version_too_large(requested, current)
        case storage_errors.ValueTooLarge(size=size):
            # kube-apiserver passes etcd's message on as a 500, which reads as if another attempt could succeed.
            return errors.request_entity_too_large(
                f"the object takes {size} bytes, which is more than the storage takes"
            )
        case storage_errors.CorruptObject(reason=reason):
            return errors.storage_read_error(f"what is stored cannot be read: {reason}")  # the store names the object
        case (
            storage_errors.KeyExists()
            | storage_errors.RevisionConflict()
            | storage_errors.KeyNotFound()
            | storage_errors.GuardConflict()
        ):
            # The store handles these where they can happen; one that comes here lost a race and may be repeated.
            return errors.failure(409, "Conflict", f"the write met another one; try again: {error}")
        case storage_errors.StorageUnavailable(outcome_unknown=True):
            # Without Retry-After: clients take it for a request that was not processed, and repeat the write.
            return errors.service_unavailable(f"the storage cannot answer now: {error}", retry_after=0)
        case _:
            return errors.service_unavailable(f"the storage cannot answer now: {error}")


def watch_error(error: StorageError) -> APIError:
    """The API error for a storage error in a watch."""
    if isinstance(error, storage_errors.RevisionCompacted):
        return too_old(error.requested, error.compacted)
    return api_error(error)


def too_old(requested: int, oldest: int) -> APIError:
    """The 410 of a watch that cannot resume from a revision: the client has to list again."""
    return errors.gone(f"too old resource version: {requested} ({oldest})")


class ResourceErrors:
    """The errors of one resource, as requests in one of its groups get them.

    Objects are named by their keys, ``NAME`` or ``NAMESPACE/NAME``; a message has the name alone.
    """

    def __init__(self, resource: Resource, prefix: str, *, group: str | None = None) -> None:
        """``prefix`` is that of the keys in the storage; ``group`` is that of the resource unless given."""
        self._resource, self._prefix = resource, prefix
        self.group = resource.group if group is None else group

    def not_found(self, key: str) -> APIError:
        return errors.not_found(group=self.group, resource=self._resource.plural, name=name_of_key(key))

    def corrupt(self, key: str, error: CorruptObject) -> APIError:
        """For any request but a delete, of an object that is stored and cannot be read."""
        name = name_of_key(key)
        message = (
            f"{self._resource.qualified_name} {shown(name)} cannot be read from the storage: {error.reason}; "
            "delete it to have the name free again"
        )
        cause = {"reason": "UnexpectedServerResponse", "message": str(error)}
        details = {"name": name, "group": self.group, "kind": self._resource.plural, "causes": [cause]}
        return errors.storage_read_error(message, details)

    def contended(self, key: str) -> APIError:
        """For a write that met another one in every attempt."""
        return self.conflict(key, "others change the object all the time; try again")

    def already_exists(self, key: str, *, being_deleted: bool, corrupt: CorruptObject | None = None) -> APIError:
        error = errors.already_exists(group=self.group, resource=self._resource.plural, name=name_of_key(key))
        if corrupt:
            error.status["message"] += f", but cannot be read from the storage ({corrupt.reason}): delete it first"
        if being_deleted:
            error.status["message"] = f"object is being deleted: {error.status['message']}"
        return error

    def invalid(self, name: str, wrong: Sequence[FieldError]) -> APIError:
        """In every group the error is one of the resource's own kind, as in kube-apiserver."""
        return errors.invalid(group=self._resource.group, kind=self._resource.kind, name=name, errors=list(wrong))

    def missing_version(self, name: str) -> APIError:
        """For an update without the resource version that it is based on."""
        detail = "Invalid value: 0: must be specified for an update"
        wrong = FieldError("metadata.resourceVersion", "FieldValueInvalid", detail)
        if not self._resource.native:
            return self.invalid(name, [wrong])
        # As in kube-apiserver: for native kinds the registry, which knows the resource alone, makes this error.
        return errors.invalid(group=self.group, kind=self._resource.plural, name=name, errors=[wrong])

    def modified(self, key: str) -> APIError:
        """For an update that is based on another version than the stored one."""
        return self.conflict(key, _MODIFIED)

    def another_uid(self, key: str, *, wanted: str, found: str) -> APIError:
        """For an update that is meant for another object of that name."""
        # The message of kube-apiserver's storage; tools look for it.
        detail = (
            f"StorageError: invalid object, Code: 4, Key: {self._prefix}{key}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}"
        )
        return self.conflict(key, detail)

    def unmet_precondition(self, key: str, detail: str) -> APIError:
        """For a delete. As in kube-apiserver it names the kind, not the resource."""
        return errors.conflict(
            group=self._resource.group, resource=self._resource.kind, name=name_of_key(key), detail=detail
        )

    def not_deletable(self, reasons: Mapping[str, str]) -> APIError:
        """403 for objects that must not be deleted, by their keys. Of many it names the first."""
        plural, (first, *_) = self._resource.plural, reasons
        if len(reasons) == 1:
            return errors.forbidden(group=self.group, resource=plural, name=name_of_key(first), detail=reasons[first])
        names = [shown(name_of_key(key)) for key in list(reasons)[:_NAMED]]
        more = f" and {len(reasons) - _NAMED} more" if len(reasons) > _NAMED else ""
        detail = f"nothing was deleted, since {', '.join(names)}{more} must not be. The first of them: {reasons[first]}"
        return errors.forbidden(group=self.group, resource=plural, name="", detail=detail)

    def too_large(self, size: int) -> APIError:
        kind = self._resource.kind
        return errors.request_entity_too_large(f"the {kind} takes {size} bytes as it is stored, the limit is {LARGEST}")

    def conflict(self, key: str, detail: str) -> APIError:
        """409 with the detail."""
        return errors.conflict(group=self.group, resource=self._resource.plural, name=name_of_key(key), detail=detail)
