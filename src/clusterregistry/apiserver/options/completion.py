"""Loads the options of a server: reads all sources, checks the values together, and derives what depends on them.

``complete`` returns the only type that the server accepts, so that a server cannot run with unchecked options.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clusterregistry.apiserver.audit.settings import AuditSettings
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.options import (
    audit,
    authorization,
    checks,
    front_proxy,
    host_cluster,
    limits,
    oidc,
    runtime_config,
    storage,
    webhooks,
)
from clusterregistry.apiserver.options.audit import AuditOptions
from clusterregistry.apiserver.options.authentication import AuthenticationOptions
from clusterregistry.apiserver.options.authorization import AuthorizationOptions
from clusterregistry.apiserver.options.features import FeatureOptions
from clusterregistry.apiserver.options.front_proxy import FrontProxyOptions
from clusterregistry.apiserver.options.groups import Options
from clusterregistry.apiserver.options.host_cluster import HostCluster
from clusterregistry.apiserver.options.limits import LimitOptions
from clusterregistry.apiserver.options.oidc import OIDCOptions
from clusterregistry.apiserver.options.serving import ServingOptions
from clusterregistry.apiserver.options.storage import StorageOptions
from clusterregistry.apiserver.options.webhooks import WebhookOptions
from clusterregistry.apiserver.pki import tls
from clusterregistry.apiserver.pki.files import Layout
from clusterregistry.apiserver.storage.etcd.settings import EtcdSettings
from clusterregistry.cli.options import sources
from clusterregistry.cli.options.field import OptionSet
from clusterregistry.cli.options.general import GeneralOptions
from clusterregistry.cli.options.problems import OptionsError, Problem, nearest
from clusterregistry.cli.options.sources import Resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedOptions:
    """Options that were checked together. Only ``complete`` makes them.

    The groups hold the values as given (``anonymous_auth`` and the modes as they take effect); the fields after them
    are derived: use these for files and addresses.
    """

    general: GeneralOptions
    storage: StorageOptions
    serving: ServingOptions
    authentication: AuthenticationOptions
    front_proxy: FrontProxyOptions
    authorization: AuthorizationOptions
    limits: LimitOptions
    audit: AuditOptions
    oidc: OIDCOptions
    webhooks: WebhookOptions
    features: FeatureOptions
    product: Any
    """The product's own group; None: it has none."""
    program: str
    """The name of the program, after which it names its files and itself."""
    layout: Layout
    """The paths of generated files, under the data directory and the certificate directory."""
    serving_certificate: Path
    """The certificate to serve with: the operator's, or the generated one."""
    serving_key: Path
    server_ca_file: Path | None
    """The authorities by which clients verify the operator's certificate, when they are named."""
    generate_admin: bool
    """Whether to make an administrator, whose certificate the generated authority signs."""
    client_ca_files: tuple[Path, ...]
    """Authorities whose client certificates are accepted: the generated one with an administrator, the operator's."""
    proxy_ca_files: tuple[Path, ...]
    """Authorities whose client certificates are those of front proxies."""
    server_url: str
    """The URL for clients, such as ``https://127.0.0.1:8443``."""
    etcd: EtcdSettings | None
    """How to reach the etcd that stores the objects; None: SQLite stores them in the data directory."""
    audit_settings: AuditSettings | None
    """What the audit log records, and where; None: no audit log."""
    host: HostCluster | None
    """The host cluster of aggregated mode; None: standalone."""
    warnings: tuple[str, ...]
    """Warnings for the operator about options that are no mistake."""

    @property
    def data_dir(self) -> Path:
        return self.layout.data_dir

    @property
    def makes_serving_certificate(self) -> bool:
        """False when the operator provides a serving certificate."""
        return self.serving.tls_cert_file is None


def load(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    options: OptionSet[Options],
    aggregated: bool = False,
) -> CompletedOptions:
    """Reads and checks the options of a command line, an environment and a file. Raises OptionsError."""
    return load_with_sources(arguments, environ, aggregated=aggregated, options=options)[1]


def load_with_sources(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    options: OptionSet[Options],
    aggregated: bool = False,
) -> tuple[Resolved[Options], CompletedOptions]:
    """Does the same as ``load``, and returns also which source gave each value.

    Raises OptionsError with every mistake: values that could be read are checked although others could not, so that
    an operator corrects a command line once.
    """
    defaults = host_cluster.DEFAULTS if aggregated else None
    resolved = resolve(arguments, environ, defaults=defaults, options=options)
    try:
        completed = complete(resolved.options, environ, program=options.program, aggregated=aggregated)
    except OptionsError as error:
        raise OptionsError((*resolved.problems, *error.problems)) from None
    if resolved.problems:
        raise OptionsError(resolved.problems)
    return resolved, completed


def resolve(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    defaults: Mapping[str, Any] | None = None,
    options: OptionSet[Options],
) -> Resolved[Options]:
    """Reads the options without checking them together. Never raises."""
    return sources.resolve(options, sources.read_flags(options, arguments), environ, defaults=defaults)


def complete(
    options: Options, environ: Mapping[str, str], *, program: str, aggregated: bool = False
) -> CompletedOptions:
    """Checks options across fields and against the machine. Raises OptionsError with every problem at once."""
    host = _host(options, environ) if aggregated else None
    problems = [*_serving_problems(options.serving), *_name_problems(options.serving), *_other_problems(options)]
    problems += _host_problems(options, host) if aggregated else host_cluster.misplaced(options.host_cluster)
    data_dir = options.storage.data_dir or _default_data_dir(environ, program)
    if data_dir is None:
        problems.append(Problem("--data-dir", "there is no home directory to put a default in: give one"))
        raise OptionsError(problems)
    layout = _layout(data_dir, options.serving.cert_dir)
    problems += checks.directory_or_nothing("--data-dir", layout.data_dir)
    problems += checks.directory_or_nothing("--cert-dir", layout.cert_dir)
    if problems:
        raise OptionsError(problems)
    return _completed(options, layout, host, program=program)


def _host(options: Options, environ: Mapping[str, str]) -> HostCluster | None:
    return host_cluster.settings(
        options.host_cluster,
        environ,
        client_ca_file=options.authentication.client_ca_file,
        proxy_ca_file=options.front_proxy.requestheader_client_ca_file,
    )


def _host_problems(options: Options, host: HostCluster | None) -> list[Problem]:
    groups = (options.authentication, options.authorization, options.oidc, options.webhooks)
    found = [*host_cluster.problems(options.host_cluster, host), *host_cluster.left_to_the_host(groups)]
    if options.serving.generate_admin:
        found.append(Problem("--generate-admin", "is only for `standalone`: the host cluster has users"))
    return found


def _completed(options: Options, layout: Layout, host: HostCluster | None, *, program: str) -> CompletedOptions:
    serving, client_ca = options.serving, options.authentication.client_ca_file
    proxy_ca = options.front_proxy.requestheader_client_ca_file
    authentication, warnings = _without_needless_anonymity(options)
    generate_admin = host is None and _generates_admin(options)
    return CompletedOptions(
        general=options.general,
        storage=options.storage,
        serving=serving,
        authentication=authentication,
        front_proxy=options.front_proxy,
        authorization=webhooks.effective(options.authorization, options.webhooks),
        limits=options.limits,
        audit=options.audit,
        oidc=options.oidc,
        webhooks=options.webhooks,
        features=options.features,
        product=options.product,
        program=program,
        layout=layout,
        serving_certificate=_absolute(serving.tls_cert_file or layout.serving_certificate),
        serving_key=_absolute(serving.tls_private_key_file or layout.serving_key),
        server_ca_file=_absolute(serving.tls_ca_file) if serving.tls_ca_file else None,
        generate_admin=generate_admin,
        # Without an administrator, or in aggregated mode, the generated CA signs no client certificates.
        client_ca_files=(
            *((layout.ca_certificate,) if generate_admin else ()),
            *((_absolute(client_ca),) if client_ca else ()),
        ),
        proxy_ca_files=(_absolute(proxy_ca),) if proxy_ca else (),
        server_url=_server_url(serving),
        etcd=storage.etcd_settings(options.storage),
        audit_settings=audit.settings(options.audit),
        host=host,
        warnings=(
            *warnings,
            *_no_user_warning(options, host),
            *authorization.warnings(options.authorization, bind_address=serving.bind_address),
            *oidc.warnings(options.oidc),
            *host_cluster.warnings(host, proxy_ca),
        ),
    )


def _serving_problems(serving: ServingOptions) -> list[Problem]:
    problems = checks.ip_address("--bind-address", serving.bind_address)
    problems += checks.port("--secure-port", serving.secure_port)
    if serving.advertise_address:
        problems += checks.reachable_address("--advertise-address", serving.advertise_address)
    if (serving.tls_cert_file is None) != (serving.tls_private_key_file is None):
        problems.append(Problem("", "--tls-cert-file and --tls-private-key-file must be given together"))
    problems += checks.readable_file("--tls-cert-file", serving.tls_cert_file)
    problems += checks.readable_file("--tls-private-key-file", serving.tls_private_key_file)
    problems += checks.readable_file("--tls-ca-file", serving.tls_ca_file)
    if serving.tls_ca_file is not None and serving.tls_cert_file is None:
        why = "is for a certificate of your own, and --tls-cert-file is not given"
        problems.append(Problem("--tls-ca-file", why, "clients verify the generated certificate by DATA_DIR/ca.crt"))
    problems += _suite_problems(serving.tls_cipher_suites)
    problems += checks.positive("--request-timeout", serving.request_timeout)
    problems += checks.positive("--min-request-timeout", serving.min_request_timeout)
    return problems


def _name_problems(serving: ServingOptions) -> list[Problem]:
    problems = checks.certificate_names("--tls-san", serving.tls_san)
    if serving.tls_san and serving.tls_cert_file is not None:
        why = "is for the generated certificate, and --tls-cert-file is given"
        problems.append(Problem("--tls-san", why, "have your certificate made with these names"))
    return problems


def _generates_admin(options: Options) -> bool:
    """An operator who provides both authorities has users, and needs no generated administrator."""
    if options.serving.generate_admin is not None:
        return options.serving.generate_admin
    return options.authentication.client_ca_file is None or options.serving.tls_cert_file is None


def _no_user_warning(options: Options, host: HostCluster | None) -> tuple[str, ...]:
    ways = (
        options.authentication.client_ca_file,
        options.authentication.token_auth_file,
        options.front_proxy.requestheader_client_ca_file,
        options.oidc.oidc_issuer_url,
        options.webhooks.authentication_token_webhook_config_file,
    )
    if host is not None or _generates_admin(options) or any(ways):
        return ()
    why = "no user can sign in: --generate-admin is false, and no other option defines users"
    return (f"{why}. Give --client-ca-file, --token-auth-file or --oidc-issuer-url",)


def _suite_problems(named: tuple[str, ...]) -> list[Problem]:
    known = tls.CIPHER_SUITES
    return [
        Problem("--tls-cipher-suites", f'"{name}" is not known, or not safe', f"those that are: {', '.join(known)}")
        for name in named
        if name not in known
    ]


def _other_problems(options: Options) -> list[Problem]:
    problems = checks.readable_file("--client-ca-file", options.authentication.client_ca_file)
    problems += checks.readable_file("--token-auth-file", options.authentication.token_auth_file)
    problems += front_proxy.problems(options.front_proxy, client_ca_file=options.authentication.client_ca_file)
    problems += _mode_problems(options.authorization.authorization_mode)
    problems += oidc.problems(options.oidc)
    problems += webhooks.problems(options.webhooks, options.authorization)
    problems += storage.problems(options.storage)
    problems += limits.problems(options.limits)
    problems += audit.problems(options.audit)
    problems += runtime_config.problems(options.features.runtime_config)
    if not options.storage.watch_cache:
        problems.append(Problem("--watch-cache", "false is not supported yet"))
    if options.general.v < 0:
        problems.append(Problem("--v", "must not be negative"))
    return problems


def _mode_problems(named: tuple[str, ...]) -> list[Problem]:
    flag = "--authorization-mode"
    problems = [] if named else [Problem(flag, "at least one mode must be given")]
    for mode in dict.fromkeys(named):
        if mode not in modes.NAMES:
            near = nearest(mode, modes.NAMES)
            hint = f"did you mean {near}?" if near else f"one of {', '.join(modes.NAMES)}"
            problems.append(Problem(flag, f'"{mode}" is not a mode', hint))
        elif named.count(mode) > 1:
            problems.append(Problem(flag, f"{mode} is named more than once"))
    return problems


def _without_needless_anonymity(options: Options) -> tuple[AuthenticationOptions, tuple[str, ...]]:
    """As kube-apiserver does: with AlwaysAllow anonymous requests are refused."""
    authentication = options.authentication
    if not authentication.anonymous_auth or modes.ALWAYS_ALLOW not in options.authorization.authorization_mode:
        return authentication, ()
    warning = "anonymous requests are refused: --anonymous-auth does not go together with the mode AlwaysAllow"
    return replace(authentication, anonymous_auth=False), (warning,)


def _default_data_dir(environ: Mapping[str, str], program: str) -> Path | None:
    named = Path(environ.get("XDG_DATA_HOME", ""))
    if named.is_absolute():  # the specification of XDG_DATA_HOME says to ignore any other
        return named / program
    home = environ.get("HOME", "")
    try:
        return (Path(home) if home else Path.home()) / ".local" / "share" / program
    except RuntimeError:
        return None


def _layout(data_dir: Path, cert_dir: Path | None) -> Layout:
    absolute = _absolute(data_dir)
    return Layout(data_dir=absolute, cert_dir=_absolute(cert_dir) if cert_dir else absolute / "certs")


def _absolute(path: Path) -> Path:
    """Returns a path independent of the working directory; symbolic links stay as they are."""
    return path if path.is_absolute() else Path.cwd() / path


def _server_url(serving: ServingOptions) -> str:
    host = serving.advertise_address or serving.bind_address
    address = checks.ip_of(host)
    if address is not None and address.is_unspecified:
        host = "127.0.0.1" if address.version == 4 else "::1"  # noqa: PLR2004 - the version of IP
        address = ipaddress.ip_address(host)
    if address is not None and address.version == 6:  # noqa: PLR2004 - the version of IP
        host = f"[{host}]"
    return f"https://{host}:{serving.secure_port}"
