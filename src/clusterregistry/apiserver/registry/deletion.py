"""The rules of a delete: preconditions, finalizers and propagation policies. ``BeforeDelete`` in k8s.io/apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Preconditions:
    """The uid and resource version that an object must have to be deleted; None: any."""

    uid: str | None = None
    resource_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    dry_run: bool = False
    propagation_policy: str | None = None
    orphan_dependents: bool | None = None
    preconditions: Preconditions = Preconditions()


def unmet(metadata: dict[str, Any], wanted: Preconditions) -> str:
    """kube-apiserver's message for a precondition that does not hold; empty if all do."""
    if wanted.uid is not None and wanted.uid != metadata["uid"]:
        return (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({metadata['uid']}). "
            "The object might have been deleted and then recreated"
        )
    if wanted.resource_version is not None and wanted.resource_version != metadata["resourceVersion"]:
        return (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the "
            f"ResourceVersion in record ({metadata['resourceVersion']}). The object might have been modified"
        )
    return ""


def unmet_by_rules(metadata: dict[str, Any], wanted: Preconditions) -> str:
    """The message for a kind with rules of deletion of its own, such as Namespace; empty if all hold."""
    expected = {"UID": (wanted.uid, metadata["uid"])}
    expected["ResourceVersion"] = (wanted.resource_version, metadata["resourceVersion"])
    for name, (given, found) in expected.items():
        if given is not None and given != found:
            return f"Precondition failed: {name} in precondition: {given}, {name} in object meta: {found}"
    return ""


def finalizers_after(finalizers: list[str], options: DeleteOptions) -> list[str]:
    """The finalizers that hold the object once it is deleted with these options.

    The two that belong to garbage collection follow the policy; others stay as they are.
    """
    kept = [name for name in finalizers if name not in (ORPHAN, FOREGROUND)]
    if _orphans(finalizers, options):
        kept.append(ORPHAN)
    if _waits_for_dependents(finalizers, options):
        kept.append(FOREGROUND)
    return finalizers if set(kept) == set(finalizers) else kept


def _orphans(finalizers: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return options.orphan_dependents
    if options.propagation_policy is not None:
        return options.propagation_policy == "Orphan"
    return _first_policy(finalizers) == ORPHAN


def _waits_for_dependents(finalizers: list[str], options: DeleteOptions) -> bool:
    if options.orphan_dependents is not None:
        return False
    if options.propagation_policy is not None:
        return options.propagation_policy == "Foreground"
    return _first_policy(finalizers) == FOREGROUND


def _first_policy(finalizers: list[str]) -> str:
    """Without options the policy of an earlier delete holds, which the object's finalizers show."""
    return next((name for name in finalizers if name in (ORPHAN, FOREGROUND)), "")


def marked(obj: dict[str, Any], *, finalizers: list[str], now: str, graceful: bool = True) -> dict[str, Any]:
    """The object with its deletion timestamp. Marking it a second time changes only its finalizers.

    ``graceful`` is False for a kind with rules of its own: then the deletion has no grace period and no generation.
    """
    metadata = {**obj["metadata"], "finalizers": finalizers}
    if not finalizers:  # the rules of the kind hold the object
        del metadata["finalizers"]
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = now
        if graceful:
            metadata["deletionGracePeriodSeconds"] = 0
            if metadata.get("generation", 0) > 0:
                metadata["generation"] += 1
    return {**obj, "metadata": metadata}
