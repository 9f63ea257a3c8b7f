"""client-go's way to a client certificate, as the kubelet takes it: a request, its approval, and the wait for both."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from cryptography import x509

from tests.system.clients import servers
from tests.system.clients.conftest import StartClient
from tests.system.clients.servers import Server
from tools import exchanges

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
REQUESTER = [
    {
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests"],
        "verbs": ["create", "get", "list", "watch"],
    }
]


@pytest.mark.skipif(bool(servers.AGAINST), reason="kube-controller-manager signs, and does not run here")
def test_a_user_requests_a_certificate_and_uses_it(
    server: Server, start: StartClient, release: str, tmp_path: Path
) -> None:
    server.allow(REQUESTER)
    name = f"of-jane-{release}"
    client = start(release, "certify", server.user_kubeconfig, f"--name={name}", "--identity=jane", "--lease=1h")
    client.expect("requested", name=name)
    request = server.get(f"{REQUESTS}/{name}")
    assert (request["spec"]["username"], request["spec"]["expirationSeconds"]) == (server.user, 3600)
    approved = {"type": "Approved", "status": "True", "reason": "Tested", "message": "by a test"}
    request["status"]["conditions"] = [approved]
    server.replace(f"{REQUESTS}/{name}/approval", request)
    issued = client.expect("issued")

    certificate = x509.load_pem_x509_certificate(issued["certificate"].encode())
    left = certificate.not_valid_after_utc - dt.datetime.now(dt.UTC)
    assert dt.timedelta(minutes=50) < left <= dt.timedelta(hours=1)
    files = tmp_path / "jane.crt", tmp_path / "jane.key"
    for file, content in zip(files, (issued["certificate"], issued["key"]), strict=True):
        file.write_text(content)
    jane = exchanges.access(server.admin.server, ca_file=server.admin.certificate_authority.file, identity=files)
    review = exchanges.send(
        jane, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"kind": "SelfSubjectReview"}
    )
    assert exchanges.decoded(review)["status"]["userInfo"]["username"] == "jane"
