"""The servers of others that documents take for granted, made real: each by the address that the text has for it.

They put the files that a reader has of them, such as certificates, where the reader is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.apiserver.storage.etcd_servers import EtcdCluster, Settings
from tests.remote_servers import Authority, Document, IssuerServer, RemoteServer, reply

StandIns = Callable[[Path, Path], AbstractContextManager[dict[str, str]]]
"""What makes them, for the home of a reader and the directory that the reader is in."""


@contextmanager
def etcds(_: Path, directory: Path) -> Iterator[dict[str, str]]:
    """One on this machine, and one that asks for certificates."""
    own, guarded = directory / ".etcd", directory / ".guarded-etcd"
    own.mkdir()
    guarded.mkdir()
    with EtcdCluster(own) as etcd, EtcdCluster(guarded, Settings(client_certificates=True)) as secured:
        files = {"etcd-ca.crt": "ca.pem", "client.crt": "client.pem", "client.key": "client-key.pem"}
        for name, made in files.items():
            shutil.copy(guarded / made, directory / name)
        yield {
            "https://etcd.example.com:2379": secured.endpoints[0],
            "127.0.0.1:2379": etcd.endpoints[0].removeprefix("http://"),
        }


@contextmanager
def webhook(_: Path, directory: Path) -> Iterator[dict[str, str]]:
    """A webhook that knows two users by their tokens, and lets one of them list clusters."""
    own = directory / ".webhook"
    own.mkdir()
    authority = Authority(own)
    for name, made in zip(("registry.crt", "registry.key"), authority.client("registry"), strict=True):
        shutil.copy(made, directory / name)
    shutil.copy(authority.file, directory / "webhook-ca.crt")
    with RemoteServer(authority, mutual=True) as server:
        server.answer = lambda received: reply(_reviewed(received.document))
        yield {"https://access.example.com": server.url}


@contextmanager
def issuer(home: Path, directory: Path) -> Iterator[dict[str, str]]:
    """An OpenID Connect issuer; its authority and a token of it are where the reader is."""
    own = directory / ".issuer"
    own.mkdir()
    authority = Authority(own)
    with IssuerServer(authority) as server:
        for place in (home, directory):
            shutil.copy(authority.file, place / "issuer-ca.crt")
            (place / "id-token").write_text(server.token(aud="clusterregistry", sub="jane", groups=["staff"]))
        yield {"https://login.example.com": server.url}


def _reviewed(review: Document) -> Document:
    spec = review["spec"]
    if review["kind"] == "TokenReview":
        user = {"janes-token": "jane", "joes-token": "joe"}.get(spec["token"])
        status: Document = {"authenticated": bool(user)}
        if user:
            status["user"] = {"username": user, "uid": "42", "groups": ["developers"]}
    elif spec["user"] == "jane":
        status = {"allowed": spec.get("resourceAttributes", {}).get("verb") in {"get", "list"}}
    else:
        status = {"allowed": False, "denied": True, "reason": "only jane works on clusters"}
    return {**review, "status": status}


OTHERS: dict[str, StandIns] = {
    "docs/guides/security/oidc.md": issuer,
    "docs/guides/security/webhooks.md": webhook,
    "docs/guides/storage.md": etcds,
}
"""By the document that needs them."""
