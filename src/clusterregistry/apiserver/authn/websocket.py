"""Bearer tokens in the handshake of a WebSocket, where browsers can set no ``Authorization`` header.

The token is one of the offered subprotocols, ``base64url.bearer.authorization.k8s.io.TOKEN``, encoded in base64url
without padding, as in kube-apiserver. Another subprotocol must be offered besides, which the server can agree to.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Awaitable, Sequence

from clusterregistry.apiserver.authn.bearer import BearerTokens
from clusterregistry.apiserver.authn.interface import AuthRequest, CredentialRefused, Outcome

_HEADER = "sec-websocket-protocol"
_PREFIX = "base64url.bearer.authorization.k8s.io."
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


class WebSocketTokens:
    """Returns the user of a token among the subprotocols, and refuses every other token with 401."""

    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens

    def authenticate(self, request: AuthRequest) -> Outcome | Awaitable[Outcome]:
        if request.header("upgrade").lower() != "websocket":
            return None
        tokens = [protocol for protocol in _protocols(request) if protocol.startswith(_PREFIX)]
        if not tokens:
            return None
        if len(tokens) > 1:
            raise _refused("there is more than one")
        token = _decoded(tokens[0].removeprefix(_PREFIX))
        if not token:
            return None
        if not offered_protocols(request):
            raise _refused("no other subprotocol is offered")
        return self._tokens.user_of(token)


def offered_protocols(request: AuthRequest) -> Sequence[str]:
    """The subprotocols that a client offers, without a token: that is never sent back."""
    return [protocol for protocol in _protocols(request) if not protocol.startswith(_PREFIX)]


def _protocols(request: AuthRequest) -> Sequence[str]:
    given = ",".join(request.header_values(_HEADER))
    return [protocol.strip() for protocol in given.split(",")] if given else []


def _decoded(encoded: str) -> str:
    """The token. Raises CredentialRefused."""
    if not _BASE64URL.fullmatch(encoded):
        raise _refused("it is not base64url without padding")
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise _refused("it is not a text in base64url") from None


def _refused(why: str) -> CredentialRefused:
    return CredentialRefused(lambda: f"bearer token of a WebSocket: {why}")
