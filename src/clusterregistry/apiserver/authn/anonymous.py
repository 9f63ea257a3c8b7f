"""Requests without credentials: allowed in as ``system:anonymous``, or turned away."""

from __future__ import annotations

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.authn.interface import AuthRequest
from clusterregistry.apiserver.authn.user import ANONYMOUS_USER, User


class Anonymous:
    """Everybody who gave no credentials is ``system:anonymous``."""

    def authenticate(self, request: AuthRequest) -> User:  # noqa: ARG002 - the port's signature
        return ANONYMOUS_USER


class NoAnonymous:
    """Takes the place of ``Anonymous`` with ``--anonymous-auth=false``: no credentials, no entry."""

    def authenticate(self, request: AuthRequest) -> User:  # noqa: ARG002 - the port's signature
        raise errors.unauthorized()
