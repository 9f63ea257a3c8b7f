"""From the spec of an access review to the attributes that authorizers decide on, and back to a status."""

from __future__ import annotations

from typing import Any

from clusterregistry.api.authorization import GROUP
from clusterregistry.api.authorization.v1.validation import validate_metadata
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.field_errors import FieldError
from clusterregistry.apimachinery.meta.field_selectors import parse_field_selector
from clusterregistry.apimachinery.meta.label_selectors import parse_label_selector
from clusterregistry.apimachinery.meta.selectors import SelectorError
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, Verdict, decided

Object = dict[str, Any]

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


async def access_status(authorizer: Authorizer, spec: Object, user: User) -> Object:
    """What the authorizer says of a user and a valid spec."""
    decision = await decided(authorizer, _attributes(spec, user))
    status: Object = {"allowed": decision.allowed}
    if decision.verdict is Verdict.DENY:
        status["denied"] = True
    if decision.reason:
        status["reason"] = decision.reason
    if ignored := _ignored_selectors(spec.get("resourceAttributes", {})):
        status["evaluationError"] = "; ".join(ignored)
    return status


def check(question: Object, found: list[FieldError]) -> None:
    """Refuses a question with mistakes in its spec or with metadata. Raises 422, of no kind, as kube-apiserver does."""
    found = found + validate_metadata(question["metadata"])
    if found:
        raise errors.invalid(group=GROUP, kind="", name="", errors=found)


def _attributes(spec: Object, user: User) -> Attributes:
    resource = spec.get("resourceAttributes")
    if resource is None:
        path = spec["nonResourceAttributes"]
        return Attributes(user=user, verb=path.get("verb", ""), is_resource_request=False, path=path.get("path", ""))
    return Attributes(
        user=user,
        verb=resource.get("verb", ""),
        is_resource_request=True,
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        name=resource.get("name", ""),
        namespace=resource.get("namespace", ""),
    )


def _ignored_selectors(attributes: Object) -> list[str]:
    """Which selectors make no sense. None of our authorizers looks at selectors; a wrong one is told all the same."""
    found = []
    for name, count in (("fieldSelector", _bad_field_parts), ("labelSelector", _bad_label_parts)):
        selector = attributes.get(name)
        if selector is not None and (bad := count(selector)):
            partially = "partially " if bad < len(selector.get("requirements", ())) else ""
            found.append(f"spec.resourceAttributes.{name} {partially}ignored due to parse error")
    return found


def _bad_field_parts(selector: Object) -> int:
    """Field selectors know equality with one value only."""
    if "rawSelector" in selector:
        return _fails(lambda: parse_field_selector(selector["rawSelector"], supported=None))
    return sum(
        each["operator"] not in ("In", "NotIn") or len(each.get("values", ())) != 1 for each in selector["requirements"]
    )


def _bad_label_parts(selector: Object) -> int:
    if "rawSelector" in selector:
        return _fails(lambda: parse_label_selector(selector["rawSelector"]))
    return sum(each["operator"] not in _OPERATORS for each in selector["requirements"])


def _fails(parse: Any) -> int:
    try:
        parse()
    except SelectorError:
        return 1
    return 0
