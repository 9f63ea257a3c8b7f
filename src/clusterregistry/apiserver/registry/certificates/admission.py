"""Who may make, approve and sign requests for certificates: kube-apiserver's admission of CertificateSigningRequests.

The verbs ``approve`` and ``sign`` on the resource ``signers`` decide, for the name of a signer or ``DOMAIN/*``. As in
kube-apiserver, validation comes first: a write that is invalid anyway is left to it.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Callable
from functools import partial

from clusterregistry.api.certificates import GROUP
from clusterregistry.api.certificates.v1 import pkcs10, validation
from clusterregistry.api.certificates.v1.types import CLIENT_SIGNER
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.meta.field_errors import FieldError, quoted
from clusterregistry.apiserver.authn.user import MASTERS, User
from clusterregistry.apiserver.authz.forbidden import forbidden
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, decided
from clusterregistry.apiserver.registry.certificates.resource import PLURAL
from clusterregistry.apiserver.registry.strategy import Admission, Object
from clusterregistry.apiserver.registry.worker_pool import run_in_worker

SIGNERS = "signers"
"""The resource that rights to approve and sign are given on. No object of it exists."""

_PARSER = "clusterregistry.apimachinery.certificates"
"""Imports all that parses requests and certificates."""

_CONDITION_BYTES = 64
"""About the least that a condition takes in a body."""


def admissions(authorizer: Authorizer) -> dict[str, Admission]:
    """The admissions of the resource, by subresource. ``authorizer`` is that of the server."""
    return {"": RequestAdmission(), "approval": ApprovalAdmission(authorizer), "status": SigningAdmission(authorizer)}


class RequestAdmission:
    """Writes the user into a new request, and refuses a client certificate for ``system:masters``.

    The second is kube-apiserver's CertificateSubjectRestriction: who may approve cannot make an administrator.
    """

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403."""
        if old is not None:
            return
        obj["spec"] |= _user_fields(user)
        is_valid = await _passes(validation.validate, obj)
        if obj["spec"]["signerName"] != CLIENT_SIGNER or not is_valid:
            return
        request = pkcs10.parse_request(content_of(obj["spec"]["request"]) or b"")
        if MASTERS in pkcs10.organizations(request):
            raise _refused(obj, f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")


class _SignerRight:
    """A verb on signers."""

    verb: str

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def _require(self, old: Object, user: User) -> None:
        """Raises 403, and 503 if no authorizer could decide."""
        signer = old["spec"]["signerName"]
        domain = signer.partition("/")[0]
        for name in (signer, f"{domain}/*"):
            attributes = Attributes(
                user=user,
                verb=self.verb,
                is_resource_request=True,
                group=GROUP,
                version="*",
                resource=SIGNERS,
                name=name,
            )
            decision = await decided(self._authorizer, attributes)
            if decision.allowed:
                return
            if decision.undecided:
                raise forbidden(attributes, decision)
        raise _refused(old, f"user not permitted to {self.verb} requests with signerName {quoted(signer)}")


class ApprovalAdmission(_SignerRight):
    """kube-apiserver's CertificateApproval: every write to ``/approval`` needs the verb ``approve`` on the signer."""

    verb = "approve"

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403, and 503 if no authorizer could decide."""
        if old is not None and await _passes(validation.validate_approval_update, obj, old):
            await self._require(old, user)


class SigningAdmission(_SignerRight):
    """kube-apiserver's CertificateSigning: a changed certificate or condition needs the verb ``sign`` on the signer."""

    verb = "sign"

    async def admit(self, obj: Object, old: Object | None, *, user: User, name: str) -> None:  # noqa: ARG002 - the port's
        """Raises 403, and 503 if no authorizer could decide."""
        if old is None or obj["status"] == old["status"]:
            return
        if await _passes(validation.validate_status_update, obj, old):
            await self._require(old, user)


async def _passes(validate: Callable[..., list[FieldError]], *objects: Object) -> bool:
    """Whether a write is valid. Large objects are validated in a thread, as the store does it."""
    if _PARSER not in sys.modules:  # 100 ms, in which no other request has to wait
        await asyncio.to_thread(importlib.import_module, _PARSER)
    size = sum(map(_size, objects))
    return not await run_in_worker(partial(validate, *objects), size=size)


def _size(obj: Object) -> int:
    """About the bytes of the parts that validation reads."""
    spec, status = obj["spec"], obj["status"]
    texts = len(spec["request"] or "") + len(status.get("certificate", ""))
    return texts + _CONDITION_BYTES * len(status.get("conditions", ()))


def _user_fields(user: User) -> Object:
    fields = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {name: list(values) for name, values in user.extra.items()},
    }
    return {name: value for name, value in fields.items() if value}


def _refused(obj: Object, detail: str) -> errors.APIError:
    return errors.forbidden(group=GROUP, resource=PLURAL, name=obj["metadata"].get("name", ""), detail=detail)
