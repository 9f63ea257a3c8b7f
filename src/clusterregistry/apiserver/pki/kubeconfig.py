"""The administrator's kubeconfig: one file with all that kubectl needs."""

from __future__ import annotations

import base64
import binascii
import json
import re

_TEMPLATE = """\
# Made by {program} for its administrator. Keep it secret: it holds a private key.
apiVersion: v1
kind: Config
clusters:
- name: {program}
  cluster:
    server: {server}
    certificate-authority-data: {authorities}
users:
- name: admin
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {program}
  context:
    cluster: {program}
    user: admin
current-context: {program}
"""

_AUTHORITIES = re.compile(rb"certificate-authority-data[\"']?:\s*[\"']?([A-Za-z0-9+/]+=*)")


def render(*, program: str, server_url: str, authorities: bytes, certificate: bytes, key: bytes) -> bytes:
    """A kubeconfig with everything embedded. ``authorities`` are the certificates to trust the server by."""
    return _TEMPLATE.format(
        program=program,
        server=json.dumps(server_url),
        authorities=_data(authorities),
        certificate=_data(certificate),
        key=_data(key),
    ).encode()


def speaks_of(content: bytes, *, server_url: str, certificate: bytes) -> bool:
    """Whether a file that somebody edited still leads to this server with this certificate."""
    return server_url.encode() in content and _data(certificate).encode() in content


def authorities_in(content: bytes) -> list[bytes]:
    """The authorities that a kubeconfig trusts servers by, those that are embedded and can be read."""
    found = []
    for data in _AUTHORITIES.findall(content):
        try:
            found.append(base64.b64decode(data, validate=True))
        except binascii.Error:
            continue
    return found


def _data(content: bytes) -> str:
    return base64.b64encode(content).decode()
