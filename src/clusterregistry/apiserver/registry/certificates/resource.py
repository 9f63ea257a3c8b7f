"""The resource CertificateSigningRequest: strategies and printed columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clusterregistry.api.certificates import GROUP
from clusterregistry.api.certificates.v1 import VERSION, validation
from clusterregistry.api.certificates.v1.types import (
    APPROVED,
    CERTIFICATE_SIGNING_REQUEST,
    CERTIFICATE_SIGNING_REQUEST_KIND,
    DENIED,
    FAILED,
)
from clusterregistry.api.certificates.v1.validation import conditions_of
from clusterregistry.apimachinery.meta import times
from clusterregistry.apimachinery.meta.duration import human_duration
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.names import PATH_SEGMENTS
from clusterregistry.apimachinery.schema import native
from clusterregistry.apiserver.registry.columns import field_cell, name_column
from clusterregistry.apiserver.registry.resource import Column, Resource, Subresource, Version
from clusterregistry.apiserver.registry.strategy import Object

PLURAL = "certificatesigningrequests"
QUALIFIED_NAME = f"{PLURAL}.{GROUP}"

_SET_BY_THE_SERVER = ("username", "uid", "groups", "extra")
_NONE = "<none>"
_USER_COLUMN = "Requestor"  # codespell:ignore requestor

Now = Callable[[], str]


def certificate_signing_request_resource(now: Now = times.present) -> Resource:
    """The resource. ``now`` is the time that conditions get.

    Its admissions depend on the authorizer, so that the resource does not declare them: see ``admission.admissions``.
    """
    columns = (
        name_column("The name of the request. It cannot be changed."),
        Column(
            name="Age",
            type="string",
            is_age=True,
            cell=field_cell("metadata", "creationTimestamp"),
            description="How long ago the request was made.",
        ),
        Column(name="SignerName", type="string", cell=_signer, description="Who is to sign."),
        Column(name=_USER_COLUMN, type="string", cell=_username, description="The user who made the request."),
        Column(name="RequestedDuration", type="string", cell=_duration, description="How long it is to be valid."),
        Column(name="Condition", type="string", cell=shown_condition, description="What was decided, and done."),
    )
    return Resource(
        group=GROUP,
        kind=CERTIFICATE_SIGNING_REQUEST_KIND,
        plural=PLURAL,
        singular="certificatesigningrequest",
        short_names=("csr",),
        versions=(Version(name=VERSION, schema=CERTIFICATE_SIGNING_REQUEST, columns=columns, decode=_decode),),
        storage_version=VERSION,
        strategy=RequestStrategy(),
        subresources={
            "approval": Subresource(strategy=ApprovalStrategy(now)),
            "status": Subresource(strategy=StatusStrategy(now)),
        },
        selectable_fields={"spec.signerName": _signer_name},
        names=PATH_SEGMENTS,
        native=True,
        default_roles=(),
    )


_decode = native.decoder(CERTIFICATE_SIGNING_REQUEST, kind=CERTIFICATE_SIGNING_REQUEST_KIND)


class RequestStrategy:
    """The client owns the spec of a new request, except for the user in it. Afterwards only metadata may change."""

    allow_create_on_update = False
    allow_unconditional_update = True
    reset_fields: frozenset[str] = frozenset(("spec", "status"))

    def prepare_for_create(self, obj: Object) -> None:
        """Drops the status, and the user, which the admission sets."""
        _decode(obj)  # an applied object has not been decoded yet
        obj["spec"] = {name: value for name, value in obj["spec"].items() if name not in _SET_BY_THE_SERVER}
        obj["status"] = {}

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        obj["spec"], obj["status"] = old["spec"], old["status"]

    def validate(self, obj: Object) -> list[FieldError]:
        return validation.validate(obj)

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_update(obj, old)

    def warnings(self, _obj: Object, _old: Object | None) -> Sequence[str]:
        return ()


class StatusStrategy(RequestStrategy):
    """The strategy of ``/status``: the certificate and conditions are the signer's, decisions stay as they were."""

    reset_fields = frozenset(("spec", "status.conditions"))

    def __init__(self, now: Now) -> None:
        self._now = now

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _decode(obj)
        obj["spec"] = old["spec"]
        for kind in (APPROVED, DENIED):
            _keep_conditions(obj, old, kind)
        _set_times(obj, old, now=self._now())

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_status_update(obj, old)


class ApprovalStrategy(RequestStrategy):
    """The strategy of ``/approval``: conditions are the client's, and all else is kept as it was."""

    reset_fields = frozenset(("spec", "status.certificate"))

    def __init__(self, now: Now) -> None:
        self._now = now

    def prepare_for_update(self, obj: Object, old: Object) -> None:
        _decode(obj)
        _set_times(obj, old, now=self._now())
        conditions = conditions_of(obj)
        kept = {name: value for name, value in old["status"].items() if name != "conditions"}
        obj["spec"], obj["status"] = old["spec"], {"conditions": conditions} | kept if conditions else kept

    def validate_update(self, obj: Object, old: Object) -> list[FieldError]:
        return validation.validate_approval_update(obj, old)


def _keep_conditions(obj: Object, old: Object, kind: str) -> None:
    """Takes the conditions of a type from ``old``, unless their number differs: validation refuses that."""
    before = iter(conditions_of(old, kind))
    if len(conditions_of(obj, kind)) == len(conditions_of(old, kind)) > 0:
        kept = [next(before) if each["type"] == kind else each for each in conditions_of(obj)]
        obj["status"] = obj["status"] | {"conditions": kept}


def _set_times(obj: Object, old: Object, *, now: str) -> None:
    """Sets the times that a client left out. A condition that had its status before keeps its transition time."""
    if not conditions_of(obj):
        return
    before = {
        (each["type"], each["status"]): each["lastTransitionTime"]
        for each in reversed(conditions_of(old))
        if each.get("lastTransitionTime")
    }
    dated = [
        {
            **each,
            "lastUpdateTime": each.get("lastUpdateTime") or now,
            "lastTransitionTime": each.get("lastTransitionTime") or before.get((each["type"], each["status"]), now),
        }
        for each in conditions_of(obj)
    ]
    obj["status"] = obj["status"] | {"conditions": dated}


def shown_condition(request: Object) -> str:
    """What was decided about a request and done with it, as kube-apiserver shows it."""
    types = {each["type"] for each in conditions_of(request)}
    decided = DENIED if DENIED in types else APPROVED if APPROVED in types else "Pending"
    failed = f",{FAILED}" if FAILED in types else ""
    issued = ",Issued" if request["status"].get("certificate") else ""
    return decided + failed + issued


def _signer_name(request: Object) -> str:
    name: str = request["spec"]["signerName"]
    return name


def _signer(request: Object) -> str:
    return _signer_name(request) or _NONE


def _username(request: Object) -> str:
    name: str = request["spec"].get("username", "")
    return name


def _duration(request: Object) -> str:
    seconds = request["spec"].get("expirationSeconds")
    return _NONE if seconds is None else human_duration(seconds)
