"""Every way to say who one is: good, bad, and two at once."""

from __future__ import annotations

from collections.abc import Mapping

from tests.system.access.oracle import STRANGER, State, Who, Wish, who

JANE, JOE, CARL = who("jane", "devs"), who("joe"), who("carl", "devs")
PAULA, OLGA, WILLA = who("paula", "ops"), who("oidc:olga", "oidc:devs"), who("willa", "devs")
BOT = who("system:serviceaccount:fleet:bot")
ADMIN, IMKE = who("admin", "system:masters"), who("imke")
"""Imke may act as jane and as a member of devs, by a role of her own: ``IMKES_RULES``."""

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


def every(tokens: Mapping[str, str]) -> list[State]:
    """``tokens`` are those of others than the token file, by what they are."""
    return [*_plain(tokens), *_with_certificates(), *_front_proxies(), *_two_at_once(tokens), *_impersonating()]


def down(tokens: Mapping[str, str]) -> list[State]:
    """Those about whom the webhook has to be asked again each time, in vain."""
    return [
        State(label="webhook down", user=None, headers=bearer(tokens["webhook down"])),
        State(label="webhook down, certificate", user=CARL, headers=bearer(tokens["webhook down"]), certificate="carl"),
    ]


def _plain(tokens: Mapping[str, str]) -> list[State]:
    given: dict[str, tuple[Who | None, str]] = {
        "no credentials": (STRANGER, ""),
        "another scheme": (STRANGER, "Basic amFuZTpqYW5lcw=="),
        "an empty token": (STRANGER, "Bearer "),
        "no scheme": (STRANGER, "janes"),
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
        "an issuer's token for others": (None, f"Bearer {tokens['issued for others']}"),
        "a token that the webhook knows": (WILLA, f"Bearer {tokens['webhook']}"),
        "a token that the webhook refuses": (None, f"Bearer {tokens['webhook refuses']}"),
    }
    return [
        State(label=label, user=user, headers=(("Authorization", value),) if value else ())
        for label, (user, value) in given.items()
    ]


def _with_certificates() -> list[State]:
    return [
        State(label="certificate", user=CARL, certificate="carl"),
        State(label="certificate that has ended", user=None, certificate="carl ended"),
        State(label="certificate of the proxies' authority", user=None, certificate="carl of the proxies"),
        State(label="the proxy's certificate alone", user=None, certificate="front-proxy"),
    ]


def _front_proxies() -> list[State]:
    return [
        State(label="proxy", user=PAULA, certificate="front-proxy", headers=_SAYS_PAULA),
        State(label="proxy of an administrator", user=ADMIN, certificate="front-proxy", headers=_SAYS_ADMIN),
        State(label="proxy with another name", user=None, certificate="other proxy", headers=_SAYS_ADMIN),
        State(label="proxy that has ended", user=None, certificate="front-proxy ended", headers=_SAYS_ADMIN),
        State(label="proxy's headers, no certificate", user=STRANGER, headers=_SAYS_ADMIN),
        State(label="proxy's headers, a user's certificate", user=CARL, certificate="carl", headers=_SAYS_ADMIN),
        State(label="proxy that says only a group", user=None, certificate="front-proxy", headers=_SAYS_ADMIN[1:]),
    ]


def _two_at_once(tokens: Mapping[str, str]) -> list[State]:
    janes, wrong = bearer("janes"), bearer("unknown")
    return [
        State(label="certificate and token", user=CARL, certificate="carl", headers=janes),
        State(label="certificate, bad token", user=CARL, certificate="carl", headers=wrong),
        State(label="ended certificate, token", user=JANE, certificate="carl ended", headers=janes),
        State(label="ended certificate, bad token", user=None, certificate="carl ended", headers=wrong),
        State(label="ended certificate, issuer", user=OLGA, certificate="carl ended", headers=bearer(tokens["issued"])),
        State(label="proxy and token", user=PAULA, certificate="front-proxy", headers=(*_SAYS_PAULA, *janes)),
        State(label="proxy, bad token", user=PAULA, certificate="front-proxy", headers=(*_SAYS_PAULA, *wrong)),
        State(label="bad proxy, token", user=JANE, certificate="other proxy", headers=(*_SAYS_ADMIN, *janes)),
        State(label="bad proxy, bad token", user=None, certificate="other proxy", headers=(*_SAYS_ADMIN, *wrong)),
        State(label="headers only, token", user=JANE, headers=(*_SAYS_ADMIN, *janes)),
        State(label="headers only, bad token", user=None, headers=(*_SAYS_ADMIN, *wrong)),
    ]


def _impersonating() -> list[State]:
    return [
        _acting("admin as jane", ADMIN, bearer("admintoken"), JANE, group="devs"),
        _acting("admin as the bot", ADMIN, bearer("admintoken"), _account_groups(BOT)),
        _acting("admin as the stranger", ADMIN, bearer("admintoken"), STRANGER),
        _acting("imke as jane", IMKE, bearer("imkes"), who("jane")),
        _acting("imke as jane of devs", IMKE, bearer("imkes"), JANE, group="devs"),
        _acting(
            "imke as jane of masters", IMKE, bearer("imkes"), who("jane", "system:masters"), group="system:masters"
        ),
        _acting("imke as joe", IMKE, bearer("imkes"), JOE),
        _acting("imke as the bot", IMKE, bearer("imkes"), _account_groups(BOT)),
        _acting("jane as joe", JANE, bearer("janes"), JOE),
        _acting("jane as herself", JANE, bearer("janes"), who("jane")),
        _acting("a stranger as jane", STRANGER, (), who("jane")),
        _acting("nobody as jane", None, bearer("unknown"), who("jane")),
    ]


def _account_groups(account: Who) -> Who:
    namespace = account.name.split(":")[2]
    return Who(account.name, account.groups | {"system:serviceaccounts", f"system:serviceaccounts:{namespace}"})


def _acting(label: str, user: Who | None, headers: Headers, other: Who, *, group: str = "") -> State:
    needs = [_user_needed(other)]
    sent: Headers = (("Impersonate-User", other.name),)
    if group:
        needs.append(Wish(verb="impersonate", resource="groups", name=group))
        sent = (*sent, ("Impersonate-Group", group))
    return State(label=label, user=user, headers=(*headers, *sent), wants_to_be=other, needs=tuple(needs))


def _user_needed(other: Who) -> Wish:
    if other.name.startswith("system:serviceaccount:"):
        _, _, namespace, name = other.name.split(":")
        return Wish(verb="impersonate", resource="serviceaccounts", name=name, namespace=namespace)
    return Wish(verb="impersonate", resource="users", name=other.name)
