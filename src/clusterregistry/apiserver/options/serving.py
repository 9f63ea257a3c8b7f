"""Options about the socket: where to listen, with which certificate, and for how long."""

# ruff: noqa: RUF009 - option() declares a field, it does not compute a default
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from clusterregistry.cli.options.field import option
from clusterregistry.cli.options.value_types import (
    ADDRESS,
    BOOLEAN,
    DIRECTORY,
    DURATION,
    FILE,
    INTEGER,
    WORDS,
    Kind,
    choice,
)

# As k3s takes it: several times, and several at once.
_NAMES: Kind[tuple[str, ...]] = Kind(
    metavar="A,B,...", parse=WORDS.parse, show=",".join, empty_is_default=True, repeatable=True
)
_UNLESS_GIVEN: Kind[bool | None] = Kind(
    metavar="BOOL", parse=BOOLEAN.parse, show=lambda value: str(value).lower(), bare="true"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOptions:
    """Serving."""

    bind_address: str = option(
        "127.0.0.1",
        kind=ADDRESS,
        help="The IP address to listen on. Only this machine can reach the default, so that a first try exposes "
        "nothing; `0.0.0.0` or `::` listens on all interfaces.",
        example="--bind-address=0.0.0.0",
    )
    secure_port: int = option(
        8443,
        kind=INTEGER,
        help="The TCP port for HTTPS, 1 to 65535. There is no port without TLS.",
        example="--secure-port=6443",
    )
    advertise_address: str = option(
        "",
        kind=ADDRESS,
        help="The IP address or host name by which clients reach this server. It goes into the serving certificate "
        "and into admin.kubeconfig. Give it when listening on all interfaces.",
        default_shown="the bind address, or this machine when that is all interfaces",
        example="--advertise-address=registry.example.com",
    )
    cert_dir: Path | None = option(
        None,
        kind=DIRECTORY,
        help="Where generated certificates and their keys are kept (the CA itself is in the data directory).",
        default_shown="`certs` in the data directory",
    )
    tls_san: tuple[str, ...] = option(
        (),
        kind=_NAMES,
        help="Further DNS names and IP addresses for the generated serving certificate, besides this machine's name, "
        "loopback, and the two addresses above; 200 at most. Wildcards such as `*.example.com` are fine. May be given "
        "several times. A change makes a new certificate at the next start.",
        default_shown="none",
        example="--tls-san=registry.example.com --tls-san=10.0.0.5,*.registry.example.com",
    )
    tls_cert_file: Path | None = option(
        None,
        kind=FILE,
        help="A serving certificate of your own, PEM, followed by the intermediate certificates if there are any. "
        "Needs --tls-private-key-file. Both are read again when they change.",
        default_shown="one is made, signed by DATA_DIR/ca.crt",
        example="--tls-cert-file=tls.crt --tls-private-key-file=tls.key",
    )
    tls_private_key_file: Path | None = option(
        None,
        kind=FILE,
        help="The private key of --tls-cert-file, PEM, without a passphrase.",
        default_shown="one is made",
    )
    tls_ca_file: Path | None = option(
        None,
        kind=FILE,
        help="The certificate authorities, PEM, by which clients verify --tls-cert-file. They go into "
        "admin.kubeconfig and DATA_DIR/server-ca.crt, so that copies stay good when the certificate is renewed. Read "
        "again when it changes.",
        default_shown="the authority at the end of --tls-cert-file, or the certificate itself when it comes alone",
        example="--tls-ca-file=ca.crt",
    )
    generate_admin: bool | None = option(
        None,
        kind=_UNLESS_GIVEN,
        help="Whether to make an administrator's certificate and admin.kubeconfig, and to accept client certificates "
        "of the generated CA. When false, no CA is made either, unless the serving certificate needs one. Only for "
        "`PROGRAM standalone`.",
        default_shown="true, but false when both --client-ca-file and --tls-cert-file are given",
        example="--generate-admin=false",
    )
    tls_min_version: Literal["VersionTLS12", "VersionTLS13"] = option(
        "VersionTLS12",
        kind=choice("VersionTLS12", "VersionTLS13"),
        help="The oldest version of TLS that clients may use.",
        example="--tls-min-version=VersionTLS13",
    )
    tls_cipher_suites: tuple[str, ...] = option(
        (),
        kind=WORDS,
        help="The cipher suites for TLS 1.2, by the names that kube-apiserver uses. Only those with forward secrecy "
        "and authenticated encryption are known; those of TLS 1.3 cannot be chosen.",
        default_shown="all that are known",
        example="--tls-cipher-suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    )
    request_timeout: float = option(
        60.0,
        kind=DURATION,
        help="How long a request may take, watches aside. A client that asks for more gets this.",
        example="--request-timeout=30s",
    )
    min_request_timeout: float = option(
        1800.0,
        kind=DURATION,
        help="The least time after which the server ends a watch that names no timeout. Each watch gets a random time "
        "from this to twice this, so that clients do not all come back at once.",
        example="--min-request-timeout=600",
    )
    shutdown_delay_duration: float = option(
        0.0,
        kind=DURATION,
        help="How long the server goes on serving after it was told to stop, while /readyz already says no: time for "
        "load balancers to look elsewhere.",
        example="--shutdown-delay-duration=10s",
    )
