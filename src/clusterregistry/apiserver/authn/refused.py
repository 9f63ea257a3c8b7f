"""A 401 for credentials that are not good, with the reason for the server's log. The client never sees the reason."""

from __future__ import annotations

from collections.abc import Callable

from clusterregistry.apimachinery.meta import errors
from clusterregistry.apimachinery.meta.errors import APIError


class CredentialRefused(APIError):  # noqa: N818 - what happens to the credential
    """``describe`` says which credential it is and why it is not good, and holds nothing of a secret.

    It is called only for a refusal that is logged: of many in a second most are not.
    """

    def __init__(self, describe: Callable[[], str]) -> None:
        super().__init__(errors.unauthorized().status)
        self.describe = describe
