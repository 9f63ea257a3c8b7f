"""The patches of the API, as functions from a wire value and a patch to a new wire value.

``json_patch`` (RFC 6902), ``merge_patch`` (RFC 7386) and ``strategic_merge``, each with one ``apply``. The package
is pure: it does no I/O, never modifies what it is given (results share what did not change with it, so treat both
as immutable) and raises nothing but ``PatchError``. It knows schemas but no kind of object, and does not validate
results.
"""

from clusterregistry.apimachinery.patch.errors import InvalidPatch, PatchError, PatchFailed, PatchTooLarge

__all__ = ["InvalidPatch", "PatchError", "PatchFailed", "PatchTooLarge"]
