"""An agent as `clusterregistry join` deploys it: its manifest in a real kube-apiserver, its pod with what is mounted.

The certificate that the pod begins with is about to end. So the agent renews it, and replaces the Secret as the service
account of its pod.
"""

from __future__ import annotations

import base64
import datetime as dt
import subprocess
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterregistry.agent import identity
from clusterregistry.agent.certificate import AgentCertificate
from clusterregistry.agent.manifest import NAME, NAMESPACE, SECRET, SECRET_KEY
from clusterregistry.apimachinery import certificates
from clusterregistry.client.certificate_request import validity
from tests.agent.sites import Site
from tests.apiserver.server.programs import Program
from tests.crinit.containers import mounting
from tests.crinit.kubelets import Kubelet
from tests.system.e2e.host_clusters import HostCluster
from tests.system.e2e.real_programs import kubectl
from tools.processes import PATIENCE, wait_for

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not mounting(), reason="processes may not have mounts of their own here (unshare --mount)"),
]

Output = pytest.CaptureFixture[str]
_SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"


def ending(program: Program) -> AgentCertificate:
    """A certificate of the agent of edge that was valid for a day, and ends in two minutes."""
    authority = x509.load_pem_x509_certificate(program.authority.read_bytes())
    signing = load_pem_private_key((program.data / "ca.key").read_bytes(), None)
    key, now = certificates.new_key(), dt.datetime.now(dt.UTC)
    subject = [
        x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:clusterregistry:agents"),
        x509.NameAttribute(NameOID.COMMON_NAME, "system:clusterregistry:agent:edge"),
    ]
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(subject))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(minutes=2))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(signing, hashes.SHA256())  # type: ignore[arg-type]  # of the kind that the registry makes
    )
    return AgentCertificate(certificate=certificates.certificate_pem(made), key=certificates.key_pem(key))


def apply(site: Site, kubeconfig: Path, manifest: str) -> None:
    done = subprocess.run(
        [kubectl("1.36"), f"--kubeconfig={kubeconfig}", "apply", "--filename=-"],
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        input=manifest,
        env={"HOME": str(site.directory)},
    )
    assert done.returncode == 0, done.stderr


def test_an_agent_runs_in_its_pod_and_renews_its_secret(
    host: HostCluster, kubeconfig: Path, program: Program, tmp_path: Path, capsys: Output
) -> None:
    with Site(program, None, tmp_path) as site:
        token = site.new_token(capsys, "edge")["token"]
        out = tmp_path / "out"
        words = site.join_arguments(token, f"--out={out}", f"--member-kubeconfig={kubeconfig}")
        assert site.run(*words) == 0, capsys.readouterr().err
        documents = list(yaml.safe_load_all((out / "agent.yaml").read_text()))
        old = identity.render(server=site.url, authorities=program.authority.read_bytes(), identity=ending(program))
        for each in documents:
            if each["kind"] == "Secret":
                each["data"][SECRET_KEY] = base64.b64encode(old).decode()
        apply(site, kubeconfig, yaml.safe_dump_all(documents))

        def stored() -> bytes:
            found = host.admin.get(_SECRET) or {}
            return base64.b64decode(found["data"][SECRET_KEY])

        with Kubelet(host, tmp_path / "node", NAMESPACE) as kubelet:
            wait_for(lambda: NAME in kubelet.pods)
            pod = kubelet.pods[NAME]
            wait_for(lambda: bool(site.status("edge").get("observedAt")), lambda: pod.log().read_text())
            wait_for(lambda: stored() != old, lambda: pod.log().read_text())
            conditions = {each["type"]: each["status"] for each in site.status("edge")["conditions"]}
            assert (conditions["Reachable"], conditions["IdentityVerified"]) == ("True", "True")
            assert site.status("edge")["nodes"]["total"] == 1
            renewed = tmp_path / "renewed.kubeconfig"
            renewed.write_bytes(stored())
            held = identity.KubeconfigIdentity(renewed).current()
            assert identity.cluster_of(held.certificate) == "edge"
            begin, end = validity(held.certificate)
            assert end - begin > 29 * 86400
        host.admin.delete(f"/api/v1/namespaces/{NAMESPACE}")
