"""Every kind of credentials: good, bad, and two at once."""

from __future__ import annotations

from collections.abc import Mapping

from tests.system.access.oracle import ANONYMOUS, Action, Identity, Login, identity

JANE, JOE, CARL = identity("jane", "devs"), identity("joe"), identity("carl", "devs")
PAULA, OLGA, WILLA = identity("paula", "ops"), identity("oidc:olga", "oidc:devs"), identity("willa", "devs")
BOT = identity("system:serviceaccount:fleet:bot")
ADMIN, IMKE = identity("admin", "system:masters"), identity("imke")
"""Imke may impersonate jane and the group devs, by ``IMKES_RULES``."""

IMKES_RULES = [
    {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"], "resourceNames": ["jane"]},
    {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"], "resourceNames": ["devs"]},
]

TOKEN_FILE = """\
admintoken,admin,1,"system:masters"
janes,jane,2,"devs"
joes,joe,3
imkes,imke,4
bots,system:serviceaccount:fleet:bot,5
"""

CERTIFICATES = ("carl", "carl ended", "front-proxy", "front-proxy ended", "other proxy", "carl of the proxies")

Headers = tuple[tuple[str, str], ...]
_SAYS_PAULA: Headers = (("X-Remote-User", "paula"), ("X-Remote-Group", "ops"))
_SAYS_ADMIN: Headers = (("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters"))


def bearer(token: str) -> Headers:
    return (("Authorization", f"Bearer {token}"),)


def every(tokens: Mapping[str, str]) -> list[Login]:
    """``tokens`` are those that the token file does not have, by their kind."""
    return [*_plain(tokens), *_with_certificates(), *_front_proxies(), *_two_at_once(tokens), *_impersonating()]


def down(tokens: Mapping[str, str]) -> list[Login]:
    """Logins for which the webhook is called each time and does not answer."""
    return [
        Login(label="webhook down", user=None, headers=bearer(tokens["webhook down"])),
        Login(label="webhook down, certificate", user=CARL, headers=bearer(tokens["webhook down"]), certificate="carl"),
    ]


def _plain(tokens: Mapping[str, str]) -> list[Login]:
    given: dict[str, tuple[Identity | None, str]] = {
        "no credentials": (ANONYMOUS, ""),
        "another scheme": (ANONYMOUS, "Basic amFuZTpqYW5lcw=="),
        "an empty token": (ANONYMOUS, "Bearer "),
        "no scheme": (ANONYMOUS, "janes"),
        "an unknown token": (None, "Bearer unknown"),
        "a token in another case": (None, "Bearer JANES"),
        "a token with more": (None, "Bearer janes,"),
        "jane's token": (JANE, "Bearer janes"),
        "the scheme in another case": (JANE, "bEARER janes"),
        "joe's token": (JOE, "Bearer joes"),
        "the bot's token": (BOT, "Bearer bots"),
        "the administrator's token": (ADMIN, "Bearer admintoken"),
        "an issuer's token": (OLGA, f"Bearer {tokens['issued']}"),
        "an issuer's token that has ended": (None, f"Bearer {tokens['issued, ended']}"),
        "an issuer's token for another audience": (None, f"Bearer {tokens['issued for another audience']}"),
        "a token that the webhook knows": (WILLA, f"Bearer {tokens['webhook']}"),
        "a token that the webhook refuses": (None, f"Bearer {tokens['webhook refuses']}"),
    }
    return [
        Login(label=label, user=user, headers=(("Authorization", value),) if value else ())
        for label, (user, value) in given.items()
    ]


def _with_certificates() -> list[Login]:
    return [
        Login(label="certificate", user=CARL, certificate="carl"),
        Login(label="certificate that has ended", user=None, certificate="carl ended"),
        Login(label="certificate of the proxies' authority", user=None, certificate="carl of the proxies"),
        Login(label="the proxy's certificate alone", user=None, certificate="front-proxy"),
    ]


def _front_proxies() -> list[Login]:
    return [
        Login(label="proxy", user=PAULA, certificate="front-proxy", headers=_SAYS_PAULA),
        Login(label="proxy of an administrator", user=ADMIN, certificate="front-proxy", headers=_SAYS_ADMIN),
        Login(label="proxy with another name", user=None, certificate="other proxy", headers=_SAYS_ADMIN),
        Login(label="proxy that has ended", user=None, certificate="front-proxy ended", headers=_SAYS_ADMIN),
        Login(label="proxy's headers, no certificate", user=ANONYMOUS, headers=_SAYS_ADMIN),
        Login(label="proxy's headers, a user's certificate", user=CARL, certificate="carl", headers=_SAYS_ADMIN),
        Login(label="proxy that says only a group", user=None, certificate="front-proxy", headers=_SAYS_ADMIN[1:]),
    ]


def _two_at_once(tokens: Mapping[str, str]) -> list[Login]:
    janes, wrong = bearer("janes"), bearer("unknown")
    return [
        Login(label="certificate and token", user=CARL, certificate="carl", headers=janes),
        Login(label="certificate, bad token", user=CARL, certificate="carl", headers=wrong),
        Login(label="ended certificate, token", user=JANE, certificate="carl ended", headers=janes),
        Login(label="ended certificate, bad token", user=None, certificate="carl ended", headers=wrong),
        Login(label="ended certificate, issuer", user=OLGA, certificate="carl ended", headers=bearer(tokens["issued"])),
        Login(label="proxy and token", user=PAULA, certificate="front-proxy", headers=(*_SAYS_PAULA, *janes)),
        Login(label="proxy, bad token", user=PAULA, certificate="front-proxy", headers=(*_SAYS_PAULA, *wrong)),
        Login(label="bad proxy, token", user=JANE, certificate="other proxy", headers=(*_SAYS_ADMIN, *janes)),
        Login(label="bad proxy, bad token", user=None, certificate="other proxy", headers=(*_SAYS_ADMIN, *wrong)),
        Login(label="headers only, token", user=JANE, headers=(*_SAYS_ADMIN, *janes)),
        Login(label="headers only, bad token", user=None, headers=(*_SAYS_ADMIN, *wrong)),
    ]


def _impersonating() -> list[Login]:
    return [
        _acting("admin as jane", ADMIN, bearer("admintoken"), JANE, group="devs"),
        _acting("admin as the bot", ADMIN, bearer("admintoken"), _account_groups(BOT)),
        _acting("admin as anonymous", ADMIN, bearer("admintoken"), ANONYMOUS),
        _acting("imke as jane", IMKE, bearer("imkes"), identity("jane")),
        _acting("imke as jane of devs", IMKE, bearer("imkes"), JANE, group="devs"),
        _acting(
            "imke as jane of masters", IMKE, bearer("imkes"), identity("jane", "system:masters"), group="system:masters"
        ),
        _acting("imke as joe", IMKE, bearer("imkes"), JOE),
        _acting("imke as the bot", IMKE, bearer("imkes"), _account_groups(BOT)),
        _acting("jane as joe", JANE, bearer("janes"), JOE),
        _acting("jane as herself", JANE, bearer("janes"), identity("jane")),
        _acting("anonymous as jane", ANONYMOUS, (), identity("jane")),
        _acting("unknown token as jane", None, bearer("unknown"), identity("jane")),
    ]


def _account_groups(account: Identity) -> Identity:
    namespace = account.name.split(":")[2]
    return Identity(account.name, account.groups | {"system:serviceaccounts", f"system:serviceaccounts:{namespace}"})


def _acting(label: str, user: Identity | None, headers: Headers, other: Identity, *, group: str = "") -> Login:
    needs = [_user_needed(other)]
    sent: Headers = (("Impersonate-User", other.name),)
    if group:
        needs.append(Action(verb="impersonate", resource="groups", name=group))
        sent = (*sent, ("Impersonate-Group", group))
    return Login(label=label, user=user, headers=(*headers, *sent), impersonates=other, needs=tuple(needs))


def _user_needed(other: Identity) -> Action:
    if other.name.startswith("system:serviceaccount:"):
        _, _, namespace, name = other.name.split(":")
        return Action(verb="impersonate", resource="serviceaccounts", name=name, namespace=namespace)
    return Action(verb="impersonate", resource="users", name=other.name)
