"""Reads an audit policy: YAML or JSON, kind ``Policy`` of ``audit.k8s.io/v1``.

All mistakes are reported at once, each with its path in the file. Unlike kube-apiserver, which takes a file with
unknown fields and warns, this refuses it: a rule whose condition is mistyped would match more than it should.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from clusterregistry.apimachinery.codecs import DecodeError, yaml_codec
from clusterregistry.apimachinery.operator_error import OperatorError
from clusterregistry.apiserver.audit.policy import ANY, Policy, Recording, Resources, Rule
from clusterregistry.apiserver.audit.settings import LEVELS, STAGES, Level

API_VERSION, KIND = "audit.k8s.io/v1", "Policy"
_GROUP = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_POLICY_FIELDS = ("apiVersion", "kind", "metadata", "rules", "omitStages", "omitManagedFields")
_LISTS = ("users", "userGroups", "verbs", "namespaces", "nonResourceURLs", "omitStages")
_RULE_FIELDS = ("level", *_LISTS, "resources", "omitManagedFields")
_RESOURCES_FIELDS = ("group", "resources", "resourceNames")

Mistakes = list[str]


class PolicyError(OperatorError):
    """The policy cannot be read or used; the message names the file and every mistake in it."""

    def __init__(self, path: Path, mistakes: Mistakes) -> None:
        count = f"{len(mistakes)} mistakes:\n  " if len(mistakes) > 1 else ""
        super().__init__(
            f"{path}: {count}" + "\n  ".join(mistakes), remedy="correct the file that --audit-policy-file names"
        )
        self.mistakes = tuple(mistakes)


def load(path: Path) -> Policy:
    """The policy of a file. Raises PolicyError, and nothing else."""
    try:
        content = yaml_codec.decode(path.read_bytes())
    except OSError as error:
        raise PolicyError(path, [error.strerror or str(error)]) from None
    except DecodeError as error:
        raise PolicyError(path, [str(error)]) from None
    mistakes = [*_mistakes(content.value), *content.strict_errors]
    if mistakes:
        raise PolicyError(path, mistakes)
    return _policy(content.value)


def _mistakes(value: Any) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"must be a map with apiVersion: {API_VERSION}, kind: {KIND} and rules"
        return
    for name, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if value.get(name) != wanted:
            yield f"{name}: must be {wanted}"
    yield from _unknown_fields(value, "", _POLICY_FIELDS)
    yield from _wrong_boolean(value, "")
    yield from _wrong_strings(value, "", "omitStages", STAGES)
    rules = value.get("rules")
    if not isinstance(rules, list) or not rules:
        yield "rules: must be a list of at least one rule"
        return
    for index, rule in enumerate(rules):
        yield from _wrong_rule(rule, f"rules[{index}]")


def _wrong_rule(rule: Any, path: str) -> Iterator[str]:
    if not isinstance(rule, dict):
        yield f"{path}: must be a map"
        return
    yield from _unknown_fields(rule, f"{path}.", _RULE_FIELDS)
    level = rule.get("level")
    if not isinstance(level, str) or level not in LEVELS:
        yield f"{path}.level: must be one of {', '.join(LEVELS)}"
    for name in _LISTS:
        yield from _wrong_strings(rule, f"{path}.", name, STAGES if name == "omitStages" else ())
    yield from _wrong_boolean(rule, f"{path}.")
    yield from _wrong_urls(rule, path)
    yield from _wrong_resources(rule.get("resources"), f"{path}.resources")


def _wrong_urls(rule: dict[str, Any], path: str) -> Iterator[str]:
    urls = rule.get("nonResourceURLs")
    if not urls or not isinstance(urls, list):
        return
    if rule.get("resources") or rule.get("namespaces"):
        yield f"{path}.nonResourceURLs: a rule is for resources or for other URLs, not for both: make two of it"
    for index, url in enumerate(urls):
        if not isinstance(url, str) or url == ANY:
            continue
        if not url.startswith("/"):
            yield f"{path}.nonResourceURLs[{index}]: must begin with /, or be *"
        if ANY in url[:-1]:
            yield f"{path}.nonResourceURLs[{index}]: * may only be the last character"


def _wrong_resources(value: Any, path: str) -> Iterator[str]:
    if value is None:
        return
    if not isinstance(value, list):
        yield f"{path}: must be a list"
        return
    for index, each in enumerate(value):
        at = f"{path}[{index}]"
        if not isinstance(each, dict):
            yield f"{at}: must be a map with group, resources and resourceNames"
            continue
        yield from _unknown_fields(each, f"{at}.", _RESOURCES_FIELDS)
        group = each.get("group")
        if group and (not isinstance(group, str) or not _GROUP.fullmatch(group)):
            yield f'{at}.group: must be an API group such as storage.k8s.io, without a version; "" is the core'
        for name in ("resources", "resourceNames"):
            yield from _wrong_strings(each, f"{at}.", name)
        if each.get("resourceNames") and not each.get("resources"):
            yield f"{at}.resourceNames: must come with the resources that have these names"


def _unknown_fields(value: dict[str, Any], path: str, known: Collection[str]) -> Iterator[str]:
    for name in value:
        if name not in known:
            yield f"{path}{name}: there is no such field; there are {', '.join(known)}"


def _wrong_boolean(value: dict[str, Any], path: str) -> Iterator[str]:
    if not isinstance(value.get("omitManagedFields"), bool | None):
        yield f"{path}omitManagedFields: must be true or false"


def _wrong_strings(value: dict[str, Any], path: str, name: str, allowed: Collection[str] = ()) -> Iterator[str]:
    given = value.get(name)
    if given is None:
        return
    if not isinstance(given, list) or not all(isinstance(each, str) for each in given):
        yield f"{path}{name}: must be a list of strings"
        return
    for index, each in enumerate(given):
        if allowed and each not in allowed:
            yield f"{path}{name}[{index}]: must be one of {', '.join(allowed)}"


def _policy(value: dict[str, Any]) -> Policy:
    """For a value without mistakes."""
    stages, omits = _set(value, "omitStages"), bool(value.get("omitManagedFields"))
    return Policy([_rule(rule, stages, omits=omits) for rule in value["rules"]])


def _rule(value: dict[str, Any], stages: frozenset[str], *, omits: bool) -> Rule:
    """``stages`` and ``omits`` are the policy's: a rule's stages come on top, its managed fields instead."""
    own = value.get("omitManagedFields")
    level = LEVELS[value["level"]]
    return Rule(
        recording=Recording(
            level=level,
            omitted_stages=stages | _set(value, "omitStages") if level is not Level.None_ else frozenset(),
            omits_managed_fields=omits if own is None else own,
        ),
        users=_set(value, "users"),
        groups=_set(value, "userGroups"),
        verbs=_set(value, "verbs"),
        namespaces=_set(value, "namespaces"),
        resources=tuple(_resources(each) for each in value.get("resources") or ()),
        paths=tuple(value.get("nonResourceURLs") or ()),
    )


def _resources(value: dict[str, Any]) -> Resources:
    return Resources(
        group=value.get("group") or "", resources=_set(value, "resources"), names=_set(value, "resourceNames")
    )


def _set(value: dict[str, Any], name: str) -> frozenset[str]:
    return frozenset(value.get(name) or ())
