"""The command line of the server in its container."""

from __future__ import annotations

from clusterregistry.crinit.manifests import secrets
from clusterregistry.crinit.settings import Mode, Settings, Storage

PORT = 8443
DATA = "/var/lib/clusterregistry"
SERVING = "/etc/clusterregistry/serving"
TOKENS = "/etc/clusterregistry/tokens"
ETCD = "/etc/clusterregistry/etcd"
ETCD_CLIENT_PORT = 2379


def arguments(settings: Settings) -> list[str]:
    """Ours, with those that the user overrides in their place and those that only the user gives behind them."""
    chosen = {argument.partition("=")[0]: argument for argument in (*_own(settings), *settings.argument_overrides)}
    return list(chosen.values())


def _own(settings: Settings) -> list[str]:
    own = [
        "--bind-address=0.0.0.0",
        f"--secure-port={PORT}",
        f"--data-dir={DATA}",
        f"--tls-cert-file={SERVING}/tls.crt",
        f"--tls-private-key-file={SERVING}/tls.key",
    ]
    if settings.mode is Mode.STANDALONE:
        own += [f"--advertise-address={settings.service_host}", f"--client-ca-file={SERVING}/ca.crt"]
    if settings.token_auth:
        own.append(f"--token-auth-file={TOKENS}/tokens.csv")
    if settings.audit:
        # A pod's logs are collected, kept and rotated by the host cluster; a file would fill the volume of the data.
        own.append("--audit-log-path=-")
    return [*own, *_etcd(settings)]


def _etcd(settings: Settings) -> list[str]:
    if settings.storage is Storage.SQLITE:
        return []
    held = secrets.etcd_files(settings)
    files = {"ca.crt": "--etcd-cafile", "tls.crt": "--etcd-certfile", "tls.key": "--etcd-keyfile"}
    return [
        f"--etcd-servers={','.join(etcd_servers(settings))}",
        *(f"{flag}={ETCD}/{name}" for name, flag in files.items() if name in held),
    ]


def etcd_servers(settings: Settings) -> tuple[str, ...]:
    own = tuple(f"https://{host}:{ETCD_CLIENT_PORT}" for host in settings.etcd_hosts)
    return settings.etcd_servers or own
