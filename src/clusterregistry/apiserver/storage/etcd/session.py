"""Who we are to etcd: what goes along with each request."""

from __future__ import annotations

import asyncio
import logging

from clusterregistry.apiserver.storage.errors import StorageUnavailable
from clusterregistry.apiserver.storage.etcd import errors, messages
from clusterregistry.apiserver.storage.etcd.http2.frames import Metadata
from clusterregistry.apiserver.storage.etcd.http2.streams import RpcError
from clusterregistry.apiserver.storage.etcd.member import Member
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings

_SIGN_IN_SECONDS = 2.0

_log = logging.getLogger(__name__)
_REQUIRE_LEADER = ("hasleader", "true")
"""Has a member without a leader say so at once, instead of waiting for one."""


class Session:
    """One sign-in for all members, which lasts until etcd has enough of it; without a user there is none."""

    def __init__(self, settings: EtcdSettings) -> None:
        self._settings = settings
        self._signing_in = asyncio.Lock()
        self._nobody_asks = False
        self.token = ""

    async def metadata(self, member: Member) -> Metadata:
        """Signs in first if need be. Raises RpcError, and StorageUnavailable if the password cannot be read."""
        if not self._settings.user:
            return (_REQUIRE_LEADER,)
        if not (self.token or self._nobody_asks):
            async with self._signing_in:
                if not (self.token or self._nobody_asks):
                    self.token = await self._sign_in(member)
                    self._nobody_asks = not self.token
        return (_REQUIRE_LEADER, ("token", self.token)) if self.token else (_REQUIRE_LEADER,)

    def forget(self, token: str) -> bool:
        """For a token that was refused: whether there is another one to be had."""
        if self.token == token:
            self.token, self._nobody_asks = "", False
        return bool(self._settings.user)

    async def _sign_in(self, member: Member) -> str:
        """The token; empty for an etcd that does not ask for users: as its own client does, we go on without."""
        request = messages.AuthenticateRequest(name=self._settings.user, password=self._password())
        try:
            answer = await member.call("authenticate", request, metadata=(_REQUIRE_LEADER,), seconds=_SIGN_IN_SECONDS)
        except RpcError as error:
            if errors.knows_no_users(error):
                _log.warning("etcd does not ask for users (etcdctl auth enable): going on without --etcd-username")
                return ""
            if not (errors.is_passing(error) or errors.leaves_unsure(error)):
                raise
            # Else a write would count as one that may have been done.
            raise RpcError(error.code, f"signing in, before anything else: {error.details}", reached=False) from error
        return str(answer.token)

    def _password(self) -> str:
        """Read each time, so that it may change."""
        path = self._settings.password_file
        try:
            return path.read_text().rstrip("\r\n") if path else ""
        except (OSError, UnicodeDecodeError) as error:
            raise StorageUnavailable(
                f"the password for etcd cannot be read: {error}", remedy="correct --etcd-password-file"
            ) from None
