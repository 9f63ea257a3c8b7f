"""Privilege escalation: which rights of a role are not covered by the rules of the user who grants it.

As in kube-apiserver, rules are broken down to single rights, each of which must be covered by one rule of the user. A
right that only several rules together would cover counts as missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.rbac.grants import aggregated
from clusterregistry.apiserver.authz.rbac.rules import ANY, Rule, covers_path


def not_covered(wanted: Iterable[Rule], *, held: Iterable[Rule]) -> list[Rule]:
    """The single rights in ``wanted`` that no rule in ``held`` covers."""
    owned = list(held)
    return [
        right for rule in wanted for right in single_rights(rule) if not any(_covers(each, right) for each in owned)
    ]


def escalation_message(user: User, missing: Iterable[Rule], problems: Sequence[str] = ()) -> str:
    """kube-apiserver's message for a user who would grant rights that the user does not have.

    ``problems`` are those of the user's grants: a role that is missing might have had the rights.
    """
    who = f"user {quoted(user.name)} (groups={_list_of(user.groups)})"
    rights = sorted({described(each) for each in compacted(missing)})
    message = "\n".join([f"{who} is attempting to grant RBAC permissions not currently held:", *rights])
    # As in kube-apiserver: this message has roles and clusterroles, those of decisions have role and clusterrole.
    found = [problem.replace("role.", "roles.", 1) for problem in problems]
    return f"{message}; resolution errors: [{aggregated(found)}]" if found else message


def single_rights(rule: Rule) -> Iterator[Rule]:
    """Breaks a rule down: one verb on one resource or one of its objects each, or one verb on one path."""
    for group in rule.api_groups:
        for resource in rule.resources:
            for verb in rule.verbs:
                one = Rule(verbs=(verb,), api_groups=(group,), resources=(resource,))
                yield from (replace(one, resource_names=(name,)) for name in rule.resource_names)
                if not rule.resource_names:
                    yield one
    for url in rule.non_resource_urls:
        for verb in rule.verbs:
            yield Rule(verbs=(verb,), non_resource_urls=(url,))


def compacted(rights: Iterable[Rule]) -> list[Rule]:
    """Joins single rights on the same resource and object into one rule with all their verbs."""
    rules: list[Rule] = []
    by_resource: dict[tuple[Sequence[str], ...], Rule] = {}
    for right in rights:
        if right.non_resource_urls:
            rules.append(right)
            continue
        key = (right.api_groups, right.resources, right.resource_names)
        known = by_resource.get(key)
        # As in kube-apiserver: a verb that is wanted twice is listed twice.
        by_resource[key] = replace(known, verbs=known.verbs + right.verbs) if known else right
    return [*rules, *by_resource.values()]


def described(rule: Rule) -> str:
    """``{APIGroups:["apps"], Resources:["things"], Verbs:["get" "list"]}``."""
    parts = {
        "APIGroups": rule.api_groups,
        "Resources": rule.resources,
        "NonResourceURLs": rule.non_resource_urls,
        "ResourceNames": rule.resource_names,
        "Verbs": rule.verbs,
    }
    return "{" + ", ".join(f"{name}:{_list_of(values)}" for name, values in parts.items() if values) + "}"


def _covers(rule: Rule, right: Rule) -> bool:
    return (
        _has_all(rule.verbs, right.verbs)
        and _has_all(rule.api_groups, right.api_groups)
        and all(_covers_resource(rule, resource) for resource in right.resources)
        and _covers_names(rule, right)
        and all(any(covers_path(url, path) for url in rule.non_resource_urls) for path in right.non_resource_urls)
    )


def _covers_resource(rule: Rule, resource: str) -> bool:
    if resource in rule.resources or ANY in rule.resources:
        return True
    _, slash, subresource = resource.partition("/")
    return bool(slash) and f"{ANY}/{subresource}" in rule.resources


def _covers_names(rule: Rule, right: Rule) -> bool:
    if not rule.resource_names:
        return True
    return bool(right.resource_names) and right.names <= rule.names


def _has_all(held: Sequence[str], wanted: Sequence[str]) -> bool:
    return ANY in held or all(each in held for each in wanted)


def _list_of(values: Sequence[str]) -> str:
    """As Go's ``%q`` writes a list of texts."""
    return f"[{' '.join(quoted(each) for each in values)}]"
