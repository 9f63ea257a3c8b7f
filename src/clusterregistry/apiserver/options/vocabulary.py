"""Words of other programs for the options of the server, and flags that the server does not support yet.

The words come from k3s, kube-apiserver, etcd, docker and web servers. They are looked up only for an unknown option:
each becomes a hint, none becomes an option.
"""

from __future__ import annotations

from collections.abc import Mapping

from clusterregistry.cli.options.problems import Vocabulary, by_word

_WORDS: Mapping[str, str] = {
    "config": "c conf config-file configuration f file",
    "logging-format": "log-format log-fmt log-json json json-log json-logs log-output log-encoding zap-encoder",
    "data-dir": "d data datadir data-path root root-dir rootdir state-dir storage-dir storage-path workdir work-dir "
    "home db database db-path db-file sqlite sqlite-file sqlite-path volume",
    "storage-backend": "backend storage engine store datastore",
    "etcd-servers": "etcd etcd-endpoints etcd-endpoint etcd-urls etcd-url etcd-address etcd-host endpoints "
    "datastore-endpoint initial-cluster",
    "etcd-cafile": "etcd-ca etcd-ca-file etcd-cacert etcd-trusted-ca-file datastore-cafile",
    "etcd-certfile": "etcd-cert etcd-cert-file etcd-client-cert datastore-certfile",
    "etcd-keyfile": "etcd-key etcd-key-file etcd-client-key datastore-keyfile",
    "etcd-username": "etcd-user",
    "etcd-password-file": "etcd-password",
    "etcd-prefix": "prefix etcd-path",
    "bind-address": "address addr b bind bind-addr bind-ip host hostname i ip interface l listen listen-address "
    "listen-addr listen-host listen-client-urls server-address",
    "secure-port": "p port https-port https-listen-port listen-port bind-port publish tls-port server-port",
    "advertise-address": "advertise advertise-ip advertise-client-urls external-address external-hostname external-ip "
    "external-url fqdn node-external-ip node-ip public-address public-ip public-url server-url server-name",
    "tls-san": "san sans tls-sans tls-alt-names alt-names altnames subject-alt-name subject-alt-names "
    "apiserver-cert-extra-sans cert-extra-sans cert-san",
    "cert-dir": "certs certs-dir certdir certificates cert-path pki-dir",
    "tls-cert-file": "cert certificate cert-file crt server-cert ssl-cert tls-cert tls-crt tlscert tls-certificate",
    "tls-private-key-file": "key key-file keyfile private-key private-key-file server-key ssl-key tls-key "
    "tls-key-file tls-cert-key cert-key tlskey",
    "tls-min-version": "min-tls-version tls-version ssl-version",
    "tls-cipher-suites": "cipher-suites ciphers tls-ciphers",
    "client-ca-file": "ca ca-file cacert ca-cert cafile ca-crt client-ca "
    "client-ca-cert trusted-ca-file root-ca-file client-certificate-authority certificate-authority",
    "token-auth-file": "auth-file token tokens token-file tokens-file auth-token auth-tokens token-auth users "
    "users-file user-file bootstrap-token static-tokens",
    "anonymous-auth": "anonymous allow-anonymous enable-anonymous",
    "authorization-mode": "auth auth-mode authz authz-mode authorization authorizer mode rbac authorization-modes",
    "authorization-webhook-config-file": "authorization-webhook-config webhook-config-file",
    "authentication-token-webhook-config-file": "authentication-webhook-config-file authn-webhook-config-file",
    "oidc-issuer-url": "oidc oidc-issuer issuer issuer-url oidc-url",
    "oidc-client-id": "client-id oidc-client",
    "oidc-ca-file": "oidc-ca",
    "api-audiences": "audiences audience",
    "requestheader-client-ca-file": "proxy-ca proxy-ca-file requestheader-ca-file front-proxy-ca-file",
    "audit-log-path": "audit audit-log audit-file audit-log-file audit-path access-log access-logfile",
    "audit-policy-file": "audit-policy audit-config",
    "max-connections": "max-conns maxconn connections max-clients",
    "max-requests-inflight": "max-requests max-inflight max-concurrent-requests",
    "request-timeout": "timeout read-timeout write-timeout",
    "shutdown-delay-duration": "shutdown-timeout grace-period graceful-timeout shutdown-grace-period shutdown-delay",
    "kubeconfig": "k kube-config kubeconfig-file",
    "print-config": "dry-run show-config dump-config check-config config-dump validate",
}

_ADVICE: Mapping[str, str] = {
    "`standalone` writes it to DATA_DIR/admin.kubeconfig at its start; --data-dir says where that is": ""
    "write-kubeconfig write-kubeconfig-mode write-kubeconfig-group admin-kubeconfig output-kubeconfig "
    "kubeconfig-output kubeconfig-path",
    "-v=1 adds details to the log, -v=5 everything": "debug log log-level loglevel trace verbose verbosity "
    "vmodule vv vvv zap-log-level",
    "the log goes to standard error: redirect it there, such as 2>registry.log": "log-file log-dir log-path logfile "
    "logtostderr alsologtostderr stderrthreshold log-file-max-size",
    "there is no level below the default: for silence redirect standard error, 2>/dev/null": "q quiet silent s",
    "there is no port without TLS; the port for HTTPS is --secure-port": "insecure insecure-port "
    "insecure-bind-address insecure-address http http-port http-address no-tls disable-tls plain-http",
    "users have tokens, see --token-auth-file, or client certificates, see --client-ca-file": "basic-auth-file "
    "username password user u passwd admin-password",
    "requests have users here: `standalone` writes an administrator's kubeconfig to DATA_DIR/admin.kubeconfig": ""
    "no-auth disable-auth skip-auth noauth admin",
    "the server stays in the foreground: a service manager runs it in the background": "daemon daemonize detach "
    "background fork",
    "audit events go to a file: --audit-log-path": "audit-webhook-config-file audit-webhook-mode "
    "audit-webhook-batch-max-size",
    "health and metrics are at the same address as the API: /readyz, /livez, /metrics": "metrics-addr metrics-address "
    "metrics-port metrics-bind-address health-port healthz-port healthz-bind-address health-probe-bind-address",
    "ask `version`": "version V",
    "--help=all shows every flag": "help-all all-flags usage longhelp",
    "each --data-dir holds one registry, which needs no name": "name n namespace",
    "a flag of other programs, without a use here: leave it out": "service-cluster-ip-range cluster-cidr service-cidr "
    "cluster-dns cluster-domain allow-privileged enable-admission-plugins disable-admission-plugins "
    "admission-control-config-file feature-gates cloud-provider service-account-key-file service-account-issuer "
    "service-account-signing-key-file kubelet-client-certificate kubelet-client-key encryption-provider-config "
    "endpoint-reconciler-type proxy-client-cert-file proxy-client-key-file enable-aggregator-routing "
    "enable-bootstrap-token-auth kubelet-preferred-address-types node-name disable disable-agent cluster-init "
    "etcd-servers-overrides storage-media-type etcd-quorum-read cors-allowed-origins default-watch-cache-size "
    "goaway-chance enable-priority-and-fairness color no-color",
}


UNSUPPORTED: Mapping[str, str] = {"authorization-always-allow": "authorization"}
"""By flag that is planned: the topic. Such a flag is refused, never ignored: a server that silently runs without its
audit log is worse than one that does not start. A change that implements a flag moves it from here to a group."""

_INSTEAD: Mapping[str, str] = {"authorization-always-allow": "use --authorization-mode=AlwaysAllow"}

VOCABULARY = Vocabulary(
    synonyms=by_word(_WORDS),
    advice=by_word(_ADVICE),
    unsupported={flag: _INSTEAD.get(flag, "") for flag in UNSUPPORTED},
)
