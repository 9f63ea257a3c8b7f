"""Flags that people know from other programs: the hint is the one that helps, and none misleads."""

from __future__ import annotations

import pytest

from clusterregistry.apiserver.options import environment, flags, synonyms
from clusterregistry.apiserver.options.unsupported import PLANNED
from clusterregistry.cli.options.problems import nearest
from tests.product import OPTIONS


def problem(*arguments: str) -> str:
    (found,) = flags.read(arguments, OPTIONS).problems
    return str(found)


@pytest.mark.parametrize(
    ("typed", "flag"),
    [
        # What anybody types first
        ("--port", "secure-port"),
        ("-p", "secure-port"),
        ("--listen", "bind-address"),
        ("--host", "bind-address"),
        ("--address", "bind-address"),
        ("--addr", "bind-address"),
        ("--bind", "bind-address"),
        ("--cert", "tls-cert-file"),
        ("--key", "tls-private-key-file"),
        ("--tls-cert", "tls-cert-file"),
        ("--tls-key", "tls-private-key-file"),
        ("--ca", "client-ca-file"),
        ("--db", "data-dir"),
        ("--data", "data-dir"),
        ("--datadir", "data-dir"),
        ("--data_dir", "data-dir"),
        ("--etcd-endpoints", "etcd-servers"),
        ("--token-file", "token-auth-file"),
        ("--tokens", "token-auth-file"),
        ("--config-file", "config"),
        ("--log-format", "logging-format"),
        ("--log-json", "logging-format"),
        ("--dry-run", "print-config"),
        ("--san", "tls-san"),
        ("--tls-sans", "tls-san"),
        ("--apiserver-cert-extra-sans", "tls-san"),
        # k3s
        ("--https-listen-port", "secure-port"),
        ("--datastore-endpoint", "etcd-servers"),
        ("--node-external-ip", "advertise-address"),
        # kube-apiserver, etcd and docker
        ("--external-hostname", "advertise-address"),
        ("--trusted-ca-file", "client-ca-file"),
        ("--etcd-cacert", "etcd-cafile"),
        ("--tls-key-file", "tls-private-key-file"),
        ("--root-dir", "data-dir"),
        ("--public-address", "advertise-address"),
        ("--audit-log", "audit-log-path"),
        # Mistyped, or cut short
        ("--Secure-Port", "secure-port"),
        ("--secrue-port", "secure-port"),
        ("--oidc-issuer", "oidc-issuer-url"),
        ("--anonymous", "anonymous-auth"),
        ("--print-confg", "print-config"),
    ],
)
def test_the_flag_that_was_meant_is_named(typed: str, flag: str) -> None:
    assert problem(typed, "x").endswith(f"(did you mean --{flag}?)")


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("--log-level", "-v=1"),
        ("--verbose", "-v=1"),
        ("--debug", "-v=1"),
        ("--quiet", "2>/dev/null"),
        ("--write-kubeconfig", "DATA_DIR/admin.kubeconfig"),
        ("--write-kubeconfig-mode", "DATA_DIR/admin.kubeconfig"),
        ("--insecure-port", "there is no port without TLS"),
        ("--audit-webhook-config-file", "--audit-log-path"),
        ("--log-file", "standard error"),
        ("--version", "ask `version`"),
        ("-V", "ask `version`"),
        ("--service-cluster-ip-range", "leave it out"),
    ],
)
def test_what_no_flag_is_for_has_its_advice(typed: str, advice: str) -> None:
    said = problem(typed, "x")
    assert advice in said
    assert "did you mean" not in said


@pytest.mark.parametrize("typed", ["audit-webhook-config-file", "log-format", "etcd-cacert", "root-dir", "name"])
def test_options_that_only_share_words_are_not_near(typed: str) -> None:
    assert nearest(typed, set(OPTIONS.by_flag) - {"logging-format"}) == ""


@pytest.mark.parametrize(("typed", "near"), [("backpu", "backup"), ("stat", "stats"), ("rbac", "RBAC"), ("x" * 99, "")])
def test_words_are_near_with_a_mistake_or_two(typed: str, near: str) -> None:
    assert nearest(typed, ["backup", "stats", "RBAC", "x" * 98]) == near


def test_every_synonym_leads_to_a_flag_and_is_none() -> None:
    known = {*OPTIONS.by_flag, *PLANNED, *flags.COMMAND_LINE_ONLY}
    assert set(synonyms.SYNONYMS.values()) <= known
    assert not known & {*synonyms.SYNONYMS, *synonyms.ADVICE}
    assert not set(synonyms.SYNONYMS) & set(synonyms.ADVICE)


def test_a_variable_gets_the_same_hint_in_its_own_spelling() -> None:
    (found,) = environment.read({"CLUSTERREGISTRY_DATADIR": "x"}, OPTIONS).problems
    assert str(found).endswith("(did you mean CLUSTERREGISTRY_DATA_DIR?)")
