"""The error for a request that is not allowed, with kube-apiserver's message."""

from __future__ import annotations

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authz.interface import Attributes, Decision

# kube-apiserver's precaution: a message with parts of the request must not look like HTML.
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def forbidden(attributes: Attributes, decision: Decision) -> errors.APIError:
    """403 for a request that is not allowed, 503 if no authorizer could decide."""
    if decision.undecided:
        return errors.service_unavailable(_undecided_message(attributes, decision.reason))
    detail = forbidden_message(attributes, decision.reason)
    if not attributes.is_resource_request:
        return errors.forbidden_path(detail)
    return errors.forbidden(group=attributes.group, resource=attributes.resource, name=attributes.name, detail=detail)


def forbidden_message(attributes: Attributes, reason: str = "") -> str:
    """``User "jane" cannot list resource "clusters" in API group "example.com" at the cluster scope``."""
    message = _describe(attributes, verb=f"cannot {attributes.verb}").translate(_HTML)
    return f"{message}: {reason}" if reason else message


def _undecided_message(attributes: Attributes, reason: str) -> str:
    what = _describe(attributes, verb=f"may {attributes.verb}").translate(_HTML)
    return f"it cannot be decided now whether {what}: {reason}"


def _describe(attributes: Attributes, *, verb: str) -> str:
    who = f"User {quoted(attributes.user.name)} {verb}"
    if not attributes.is_resource_request:
        return f"{who} path {quoted(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    what = f"{who} resource {quoted(resource)} in API group {quoted(attributes.group)}"
    if attributes.namespace:
        return f"{what} in the namespace {quoted(attributes.namespace)}"
    return f"{what} at the cluster scope"
