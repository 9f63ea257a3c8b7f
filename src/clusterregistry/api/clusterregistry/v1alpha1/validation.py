"""Validates what the schema of a Cluster cannot express: addresses, CIDRs and certificate bundles.

Every function takes any JSON value. Values of a wrong type are skipped: the schema reports them.
"""

from __future__ import annotations

import re
import socket
from typing import Any
from urllib.parse import SplitResult, urlsplit

from clusterregistry.apimachinery.bounded_cache import bounded_cache
from clusterregistry.apimachinery.credentials import is_private_key
from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.base64_text import content_of
from clusterregistry.apimachinery.meta.field_errors import FieldError

ENDPOINTS = "spec.kubernetesApiEndpoints"

_BITS = re.compile("0|[1-9][0-9]{0,2}")
_HOST_LIMIT = 253
_HIGHEST_PORT = 65535
# DNS names have no underscores, but resolvers and container networks serve them.
_HOSTNAME = re.compile(
    r"(?:[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?\.)*[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?\.?"
)
_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_USUAL_ADDRESS = re.compile(
    rf"(?:{_OCTET}(?:\.{_OCTET}){{3}}|(?![0-9.]*(?::|$))(?:{_HOSTNAME.pattern}))(?::[1-9][0-9]{{0,3}})?"
)
"""An IPv4 address or a name, perhaps with a low port. Other addresses may be valid too; a match is valid unless it is
too long."""

_DIGITS_AND_DOTS = re.compile(r"[0-9.]+")
_HOST_AND_PORT = re.compile(r"(?:\[([^]]*)\]|([^:]*))(?::([0-9]{1,5}))?")
"""An address in brackets, or a host; and a port."""
_PEM_BLOCK = re.compile(rb"-----BEGIN ([^\r\n]*?)-----.*?-----END \1-----", re.DOTALL)
_PRIVATE_KEY = re.compile(rb"-----BEGIN [^\r\n]*PRIVATE KEY( BLOCK)?-----")


def validate_spec(cluster: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
    """The errors in the spec that the schema does not find.

    Endpoints that equal those of ``old`` are known to be valid.
    """
    endpoints = _endpoints(cluster)
    errors: list[FieldError] = []
    if old and endpoints == _endpoints(old):
        return errors
    for index, endpoint in enumerate(_items(endpoints, "serverEndpoints")):
        errors += _endpoint_errors(endpoint, index)
    bundle = endpoints.get("caBundle")
    if isinstance(bundle, str) and (wrong := ca_bundle_error(bundle)):
        errors.append(_undisclosed(f"{ENDPOINTS}.caBundle", wrong))
    return errors


def validate_spec_update(cluster: dict[str, Any], old: dict[str, Any]) -> list[FieldError]:
    """The errors of a change: a cluster's identity is immutable once it is set."""
    before = _child(old, "spec").get("clusterID")
    now = _child(cluster, "spec").get("clusterID")
    if before in (None, "", now):
        return []
    return [field_errors.invalid("spec.clusterID", now, "field is immutable")]


def server_address_error(address: str) -> str:
    """The error of an address that is not a host, host:port, IP, IP:port or http(s) URL; empty if it is valid."""
    if len(address) <= _HOST_LIMIT and _USUAL_ADDRESS.fullmatch(address):
        return ""
    if "://" in address:
        return _url_error(address)
    if _is_host_and_port(address) or _is_ip(address):
        return ""
    return "must be a host, host:port, IP, IP:port ([IP]:port for IPv6) or an http or https URL"


@bounded_cache(1024)
def client_cidr_error(cidr: str) -> str:
    """The error of a CIDR; empty if it is valid. Host bits may be set, as in Go."""
    address, _, bits = cidr.partition("/")
    longest = 128 if ":" in address else 32
    if _BITS.fullmatch(bits) and int(bits) <= longest and _is_ip(address):
        return ""
    return "must be a CIDR, such as 10.0.0.0/8 or 2001:db8::/32"


@bounded_cache(256, longest=32 * 1024)
def ca_bundle_error(bundle: str) -> str:
    """The error of a CA bundle; empty if it may be valid.

    Invalid base64, which the schema refuses, and bytes that are not PEM pass. Cached: parsing certificates is
    expensive, and a fleet shares few authorities.
    """
    decoded = content_of(bundle)
    if decoded is None:
        return ""
    if _PRIVATE_KEY.search(decoded) or is_private_key(decoded):
        return "holds a private key; it must hold certificates only, and the key that was sent should be replaced"
    if b"-----BEGIN" not in decoded:
        return ""
    return _pem_error(decoded)


def _pem_error(pem: bytes) -> str:
    blocks = list(_PEM_BLOCK.finditer(pem))
    if len(blocks) != pem.count(b"-----BEGIN"):
        return "is PEM with a block that does not end as it begins"
    for number, block in enumerate(blocks, start=1):
        if block[1] != b"CERTIFICATE":
            return f"is PEM whose block {number} is not a certificate"
        if not _is_certificate(block[0]):
            return f"is PEM whose certificate {number} does not parse"
    return ""


def _is_certificate(pem: bytes) -> bool:
    from cryptography import x509  # noqa: PLC0415  # late: it costs 59 ms at start and most objects have no PEM

    try:
        x509.load_pem_x509_certificate(pem)
    except Exception:  # noqa: BLE001  # odd DER makes the parser raise more than ValueError
        return False
    return True


def _endpoint_errors(endpoint: dict[str, Any], index: int) -> list[FieldError]:
    errors: list[FieldError] = []
    cidr, address = endpoint.get("clientCIDR"), endpoint.get("serverAddress")
    if isinstance(cidr, str) and cidr and (wrong := client_cidr_error(cidr)):
        errors.append(field_errors.invalid(f"{ENDPOINTS}.serverEndpoints[{index}].clientCIDR", cidr, wrong))
    if isinstance(address, str) and address and (wrong := server_address_error(address)):
        where = f"{ENDPOINTS}.serverEndpoints[{index}].serverAddress"
        errors.append(_undisclosed(where, wrong) if "@" in address else field_errors.invalid(where, address, wrong))
    return errors


def _undisclosed(path: str, detail: str) -> FieldError:
    """An error without the value, which may hold a secret."""
    return FieldError(path, field_errors.INVALID, f"Invalid value: {detail}")


def _url_error(address: str) -> str:
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:
        return "must be a URL with a valid host and port"
    if url.scheme not in ("http", "https"):
        return "must be an http or https URL"
    if url.username is not None or url.password is not None:
        return "must be a URL without a user or password"
    if port == 0 or not _is_url_host(url) or any(character.isspace() for character in address):
        return "must be a URL with a valid host and port"
    return ""


def _is_url_host(url: SplitResult) -> bool:
    host = url.hostname or ""
    return _is_ip(host) if ":" in host else _is_host(host)


def _is_host_and_port(address: str) -> bool:
    match = _HOST_AND_PORT.fullmatch(address)
    if match is None:
        return False
    bracketed, host, port = match.groups()
    if port is not None and not 1 <= int(port) <= _HIGHEST_PORT:
        return False
    return _is_host(host) if bracketed is None else ":" in bracketed and _is_ip(bracketed)


def _is_host(host: str) -> bool:
    if _DIGITS_AND_DOTS.fullmatch(host):
        return _is_ip(host)  # 10.0.0.256 is a mistyped address rather than a name
    return len(host) <= _HOST_LIMIT and bool(_HOSTNAME.fullmatch(host))


def _is_ip(text: str) -> bool:
    """Uses the C library, which takes a microsecond; the ipaddress module takes fifteen."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)
    except (OSError, ValueError):  # ValueError: characters that no address can have
        return False
    return True


def _endpoints(cluster: dict[str, Any]) -> dict[str, Any]:
    return _child(_child(cluster, "spec"), "kubernetesApiEndpoints")


def _child(value: Any, key: str) -> dict[str, Any]:
    child = value.get(key) if isinstance(value, dict) else None
    return child if isinstance(child, dict) else {}


def _items(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    items = value.get(key)
    return [item if isinstance(item, dict) else {} for item in items] if isinstance(items, list) else []
