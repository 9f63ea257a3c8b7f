"""Requests to a server and its answers as they are, whatever their status: thin over ``clusterregistry.client``."""

import json
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any

from clusterregistry.client.errors import ClientError
from clusterregistry.client.rest import Call
from clusterregistry.client.rest_config import Pem, RestConfig
from clusterregistry.client.sync import SyncClient
from clusterregistry.client.transport import Response


def access(
    url: str, *, ca_file: Path | None = None, token: str = "", identity: Sequence[Path] = (), **more: Any
) -> RestConfig:
    """How to reach a server. Without a CA its certificate is not checked; ``identity`` is a certificate and its key."""
    certificate, key = identity or (None, None)
    return RestConfig(
        server=url,
        user_agent="cluster-registry-tools",
        certificate_authority=Pem(file=ca_file),
        insecure_skip_tls_verify=ca_file is None,
        client_certificate=Pem(file=certificate),
        client_key=Pem(file=key),
        token=token,
        **more,
    )


def send(config: RestConfig, method: str, path: str, body: Any = None, **headers: str) -> Response:
    """Sends a request on a connection of its own; ``x_remote_user`` is a header, and so on. Raises ClientError."""
    fields = [(name.replace("_", "-"), text) for name, text in headers.items()]
    with SyncClient(config) as client:
        return client.exchange(Call(method, path, body=body, fields=fields))


def is_ok(config: RestConfig, path: str) -> bool:
    """Whether a GET is answered with 200: a server that has no certificate yet, or does not listen, is not."""
    try:
        return send(config, "GET", path).status == HTTPStatus.OK
    except ClientError:
        return False


def decoded(response: Response) -> Any:
    """The JSON of a response, or the text of any other."""
    try:
        return json.loads(response.body)
    except ValueError:
        return response.body.decode(errors="replace")
