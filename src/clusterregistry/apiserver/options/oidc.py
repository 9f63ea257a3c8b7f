"""Options about OpenID Connect: the group, what is wrong with it, what to warn about, and what it amounts to."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from clusterregistry.apiserver.authn.oidc.settings import ALGORITHMS, IssuerSettings
from clusterregistry.apiserver.authn.user import MASTERS
from clusterregistry.apiserver.options import checks
from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.problems import Problem
from clusterregistry.cli.options.value_types import ASSIGNMENTS, FILE, TEXT, WORDS

_NO_PREFIX = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class OIDCOptions:
    """OpenID Connect."""

    oidc_issuer_url: str = option(
        "",
        kind=TEXT,
        help="The issuer whose ID tokens are believed, an https URL, written exactly as the issuer writes itself. "
        "Needs --oidc-client-id. The server starts also while the issuer is out of reach.",
        default_shown="no issuer",
        example="--oidc-issuer-url=https://login.example.com --oidc-client-id=PROGRAM",
    )
    oidc_client_id: str = option(
        "",
        kind=TEXT,
        help="Whom tokens must be meant for: their `aud` must hold it.",
        default_shown="none",
    )
    oidc_username_claim: str = option(
        "sub",
        kind=TEXT,
        help="The claim that is the user's name. With `email`, a token whose `email_verified` is there and not true is "
        "refused.",
        example="--oidc-username-claim=email",
    )
    oidc_username_prefix: str = option(
        "",
        kind=TEXT,
        help="What is put before the user's name, so that no issuer can name users of others; `-` for nothing.",
        default_shown="the issuer's URL and `#`; nothing with the claim `email`",
        example="--oidc-username-prefix=oidc:",
    )
    oidc_groups_claim: str = option(
        "",
        kind=TEXT,
        help="The claim that holds the user's groups, a text or a list of them. Distributed claims are not supported.",
        default_shown="no groups",
        example="--oidc-groups-claim=groups",
    )
    oidc_groups_prefix: str = option(
        "",
        kind=TEXT,
        help="What is put before the name of each group, so that no issuer can name groups of others. Without it, "
        "whoever can make groups at the issuer can become an administrator here.",
        default_shown="nothing",
        example="--oidc-groups-prefix=oidc:",
    )
    oidc_required_claim: tuple[tuple[str, str], ...] = option(
        (),
        kind=ASSIGNMENTS,
        help="A claim and the text that it must hold. Can be given several times: all are required.",
        default_shown="none",
        example="--oidc-required-claim=tenant=example",
    )
    oidc_ca_file: Path | None = option(
        None,
        kind=FILE,
        help="The authorities, PEM, that have signed the issuer's serving certificate.",
        default_shown="the authorities that the system trusts",
        example="--oidc-ca-file=/etc/ssl/issuer-ca.crt",
    )
    oidc_signing_algs: tuple[str, ...] = option(
        ("RS256",),
        kind=WORDS,
        help=f"How tokens may be signed, some of {', '.join(ALGORITHMS)}.",
        example="--oidc-signing-algs=RS256,ES256",
    )


def settings(options: OIDCOptions) -> IssuerSettings | None:
    """The issuer; None when there is none. For options without problems."""
    if not options.oidc_issuer_url:
        return None
    return IssuerSettings(
        url=options.oidc_issuer_url,
        client_id=options.oidc_client_id,
        username_claim=options.oidc_username_claim,
        username_prefix=_username_prefix(options),
        groups_claim=options.oidc_groups_claim,
        groups_prefix=options.oidc_groups_prefix,
        required_claims=dict(options.oidc_required_claim),
        algorithms=options.oidc_signing_algs,
    )


def _username_prefix(options: OIDCOptions) -> str:
    """Kube-apiserver's rule."""
    given = options.oidc_username_prefix
    if given == _NO_PREFIX:
        return ""
    return given or ("" if options.oidc_username_claim == "email" else f"{options.oidc_issuer_url}#")


def problems(options: OIDCOptions) -> list[Problem]:
    """Everything that is wrong with them."""
    found = [] if options == OIDCOptions() else _incomplete(options)
    if options.oidc_issuer_url and not _is_issuer(options.oidc_issuer_url):
        found.append(
            Problem(
                "--oidc-issuer-url",
                f'"{options.oidc_issuer_url}" is no issuer',
                "write https://HOST[:PORT][/PATH], without user, query and fragment",
            )
        )
    found += checks.readable_file("--oidc-ca-file", options.oidc_ca_file)
    return found + _algorithm_problems(options.oidc_signing_algs) + _claim_problems(options)


def warnings(options: OIDCOptions) -> tuple[str, ...]:
    """Also a prefix such as ``system:`` lets a group of the issuer become that of administrators."""
    if not options.oidc_groups_claim or not MASTERS.startswith(options.oidc_groups_prefix):
        return ()
    danger = f"whoever can make groups at {options.oidc_issuer_url} can become an administrator here"
    cause = f"no prefix keeps the groups of --oidc-groups-claim apart from {MASTERS}"
    remedy = "give --oidc-groups-prefix=oidc: and bind roles to groups with that prefix"
    return (f"{danger}: {cause}. What to do: {remedy}",)


def _incomplete(options: OIDCOptions) -> list[Problem]:
    if not options.oidc_issuer_url or not options.oidc_client_id:
        return [Problem("", "--oidc-issuer-url and --oidc-client-id must be given together, before any other --oidc-*")]
    return []


def _algorithm_problems(named: tuple[str, ...]) -> list[Problem]:
    flag = "--oidc-signing-algs"
    found = [] if named else [Problem(flag, "at least one must be given")]
    hint = f"one of {', '.join(ALGORITHMS)}"
    return found + [Problem(flag, f'"{one}" is not supported', hint) for one in named if one not in ALGORITHMS]


def _claim_problems(options: OIDCOptions) -> list[Problem]:
    names = [name for name, _ in options.oidc_required_claim]
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    return [Problem("--oidc-required-claim", f"{name} is required more than once") for name in twice]


def _is_issuer(url: str) -> bool:
    try:
        split = urlsplit(url)
        _ = split.port
    except ValueError:
        return False
    plain = "@" not in split.netloc and "?" not in url and "#" not in url
    return split.scheme == "https" and bool(split.hostname) and plain
