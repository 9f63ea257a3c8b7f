"""The credentials of crinit for the host cluster, and the addresses at which clients reach the registry."""

from __future__ import annotations

import base64
import json
import socket
import socketserver
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from clusterregistry.apimachinery import certificates
from clusterregistry.crinit.main import main
from tests.crinit import networks
from tests.crinit.kubelets import Kubelet
from tests.crinit.test_deploy_standalone import kubectl
from tests.system.e2e.host_clusters import ADMIN, HostCluster

pytestmark = pytest.mark.e2e
PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": sys.executable}


def flags(kubeconfig: Path, namespace: str) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        f"--cluster-registry-namespace={namespace}",
        "--host-cluster-context=host",
        "--timeout=0s",
    ]


def as_user(kubeconfig: Path, user: dict[str, Any]) -> None:
    document = json.loads(kubeconfig.read_text())
    document["users"][0]["user"] = user
    kubeconfig.write_text(json.dumps(document))


def test_an_exec_plugin_of_the_kubeconfig_returns_credentials(
    namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = (
        'import json, os; info = json.loads(os.environ["KUBERNETES_EXEC_INFO"]); '
        'print(json.dumps({**info, "status": {"token": os.environ["PREFIX"] + "-token"}}))'
    )
    plugin = {**PLUGIN, "args": ["-c", script], "env": [{"name": "PREFIX", "value": "admin"}]}
    as_user(kubeconfig, {"exec": plugin})
    assert main(["standalone", "delete", "fleet", *flags(kubeconfig, namespace)[:-1]], {}) == 0
    assert "there is nothing of a registry" in capsys.readouterr().out


def test_a_token_may_be_in_a_file(namespace: str, kubeconfig: Path) -> None:
    (kubeconfig.parent / "token").write_text(ADMIN)
    as_user(kubeconfig, {"tokenFile": "token"})
    assert main(["standalone", "delete", "fleet", *flags(kubeconfig, namespace)[:-1]], {}) == 0


def test_the_proxy_of_the_kubeconfig_is_used(host: HostCluster, namespace: str, kubeconfig: Path) -> None:
    asked = []

    class Proxy(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline().decode().split()[:2])
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            with socket.create_connection(("127.0.0.1", host.port)) as there:
                networks.copy(self.connection, there)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Proxy) as proxy:
        threading.Thread(target=proxy.serve_forever, daemon=True).start()
        document = json.loads(kubeconfig.read_text())
        document["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{proxy.server_address[1]}"
        kubeconfig.write_text(json.dumps(document))
        assert main(["standalone", "delete", "fleet", *flags(kubeconfig, namespace)[:-1]], {}) == 0
        proxy.shutdown()
    assert asked[0] == ["CONNECT", f"127.0.0.1:{host.port}"]


@pytest.mark.parametrize(
    ("user", "complaint"),
    [
        ({"token": "wrong"}, "sign in again"),
        ({"exec": {**PLUGIN, "command": "/nowhere/plugin", "installHint": "install the plugin"}}, "install the plugin"),
        ({"exec": {**PLUGIN, "args": ["-c", "print(1)"]}}, "does not print an ExecCredential"),
        ({"exec": {"command": sys.executable}}, "user.exec.apiVersion: must be"),
        ({"client-certificate-data": "eA==", "client-key-data": "eA=="}, "certificates of the context"),
        ({"tokenFile": "nowhere"}, "the token of the kubeconfig"),
    ],
)
def test_credentials_that_do_not_work_are_reported(
    user: dict[str, Any], complaint: str, namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_user(kubeconfig, user)
    assert main(["standalone", "status", "fleet", *flags(kubeconfig, namespace)[:-1]], {}) == 3
    assert complaint in capsys.readouterr().err


def test_the_address_of_a_load_balancer_goes_into_the_certificate_and_credentials_come_out_of_dry_runs(
    host: HostCluster, namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = flags(kubeconfig, namespace)
    assert main(["standalone", "init", "fleet", *where], {}) == 3
    path = f"/api/v1/namespaces/{namespace}"
    ingress = [{"ip": "192.0.2.10"}]
    host.merge(f"{path}/services/fleet/status", {"status": {"loadBalancer": {"ingress": ingress}}})
    assert main(["standalone", "init", "fleet", *where], {}) == 3  # there is no node to run it on
    said = capsys.readouterr()
    assert "Address of the load balancer: 192.0.2.10" in said.out
    assert "are not ready after 0s" in said.err

    data = (host.admin.get(f"{path}/secrets/fleet-serving") or {})["data"]
    assert "192.0.2.10" in certificates.names(x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"])))

    assert main(["standalone", "init", "fleet", *where, "--dry-run", "-o", "yaml"], {}) == 0
    documents = list(yaml.safe_load_all(capsys.readouterr().out))
    printed = next(each for each in documents if each["metadata"]["name"] == "fleet-serving")
    assert printed["data"] == data


def test_a_node_port_is_reached_by_the_addresses_of_nodes(
    host: HostCluster, namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [*flags(kubeconfig, namespace), "--api-server-service-type=NodePort"]
    assert main(["standalone", "init", "fleet", *where], {}) == 3
    assert "no node of the host cluster has an address" in capsys.readouterr().err
    host.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
    addresses = [{"type": "InternalIP", "address": "192.0.2.1"}, {"type": "ExternalIP", "address": "203.0.113.1"}]
    host.merge("/api/v1/nodes/n1/status", {"status": {"addresses": addresses}})
    try:
        assert main(["standalone", "init", "fleet", *where], {}) == 3
    finally:
        host.admin.delete("/api/v1/nodes/n1")
    data = (host.admin.get(f"/api/v1/namespaces/{namespace}/secrets/fleet-serving") or {})["data"]
    names = certificates.names(x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"])))
    assert {"192.0.2.1", "203.0.113.1"} <= set(names)


def test_an_aggregated_registry_is_made_with_its_rights_and_removed_with_them(
    host: HostCluster, namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = flags(kubeconfig, namespace)
    names = [f"{version}.clusterregistry.k8s.io" for version in ("v1beta1", "v1alpha1")]
    apis = [f"/apis/apiregistration.k8s.io/v1/apiservices/{name}" for name in names]
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    bindings = (
        f"{rbac}/clusterrolebindings/clusterregistry-{namespace}-fleet-auth-delegator",
        f"{rbac}/namespaces/kube-system/rolebindings/clusterregistry-{namespace}-fleet-auth-reader",
    )
    assert main(["aggregated", "init", "fleet", *where], {}) == 3  # there is no node to run it on
    assert "are not ready after 0s" in capsys.readouterr().err
    ca = (host.admin.get(f"/api/v1/namespaces/{namespace}/secrets/fleet-serving") or {})["data"]["ca.crt"]
    for api in apis:
        found = host.admin.get(api) or {}
        assert found["spec"]["service"] == {"name": "fleet", "namespace": namespace, "port": 443}
        assert found["spec"]["caBundle"] == ca
    assert all(host.admin.get(path) for path in bindings)

    assert main(["aggregated", "status", "fleet", *where[:-1]], {}) == 1
    assert "!!  fleet: 0 of 1 pods ready" in capsys.readouterr().out

    assert main(["aggregated", "delete", "fleet", *where[:-1], "--dry-run"], {}) == 0
    said = capsys.readouterr().out
    assert all(f"would delete APIService {name}\n" in said for name in names)
    assert all(host.admin.get(api) for api in apis)
    assert main(["aggregated", "delete", "fleet", *where[:-1]], {}) == 0
    assert not any(host.admin.get(api) for api in apis)
    assert not any(host.admin.get(path) for path in bindings)


def test_delete_keeps_data_when_told_and_never_takes_what_is_not_ours(
    host: HostCluster, namespace: str, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = flags(kubeconfig, namespace)
    node = ["--api-server-service-type=NodePort", "--api-server-advertise-address=127.0.0.1"]
    assert main(["standalone", "init", "fleet", *where, *node], {}) == 3
    path = f"/api/v1/namespaces/{namespace}"
    host.create(f"{path}/configmaps", {"metadata": {"name": "theirs"}})
    kept = (host.admin.get(f"{path}/secrets/fleet-ca") or {})["data"]

    assert main(["standalone", "delete", "fleet", *where[:-1], "--keep-data"], {}) == 0
    assert host.admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/fleet") is None
    assert main(["standalone", "init", "fleet", *where], {}) == 3
    assert (host.admin.get(f"{path}/secrets/fleet-ca") or {})["data"] == kept

    capsys.readouterr()
    assert main(["standalone", "delete", "fleet", *where[:-1]], {}) == 0
    assert "kept, there is ConfigMap theirs in it" in capsys.readouterr().out
    assert host.admin.get(f"{path}/configmaps/theirs")
    assert host.admin.get(f"{path}/secrets/fleet-ca") is None

    # The volume is held by a finalizer that only a controller, which is not here, takes away.
    assert main(["standalone", "init", "fleet", *where, *node], {}) == 3
    assert f"PersistentVolumeClaim {namespace}/fleet-data is being deleted" in capsys.readouterr().err


def test_a_service_inside_of_the_cluster_is_reached_by_a_forwarded_port(
    host: HostCluster, namespace: str, kubeconfig: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = flags(kubeconfig, namespace)[:-1]
    with Kubelet(host, tmp_path / "node", namespace) as kubelet:
        assert main(["standalone", "init", "fleet", *where, "--api-server-service-type=ClusterIP"], {}) == 0
        assert (
            f"From here: kubectl --context host -n {namespace} port-forward service/fleet 8443:443, and beside it: "
            "kubectl get clusters --context fleet --server https://127.0.0.1:8443"
        ) in capsys.readouterr().out

        pod = networks.local(kubelet.pods["fleet"].address), 8443
        listening = socket.create_server(("127.0.0.1", 0))
        with closing(networks.Forward(listening, lambda: pod)):
            server = f"https://127.0.0.1:{listening.getsockname()[1]}"
            assert kubectl(kubeconfig, "get", "clusters", "--context=fleet", f"--server={server}") == ""
        assert main(["standalone", "delete", "fleet", *where], {}) == 0
