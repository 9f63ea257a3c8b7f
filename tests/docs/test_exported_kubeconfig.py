"""The script of the tutorial writes a kubeconfig with every cluster, whatever form its address has."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from clusterregistry.apimachinery import certificates
from clusterregistry.client.kubeconfig import load_file
from tests.docs import guide_reader, markdown
from tests.docs.guide_reader import Surroundings
from tests.docs.markdown import Block
from tools import programs
from tools.conformance import GUIDE_RELEASES

TUTORIAL = "docs/tutorial.md"
CA_BUNDLE = certificates.certificate_pem(
    certificates.new_authority(certificates.new_key(), now=time.time()).certificate
)
SERVERS = {
    "name": ("paris.example.com", "https://paris.example.com"),
    "name-and-port": ("paris.example.com:6443", "https://paris.example.com:6443"),
    "ipv4": ("192.0.2.7:6443", "https://192.0.2.7:6443"),
    "ipv6": ("2001:db8::7", "https://[2001:db8::7]"),
    "ipv6-and-port": ("[2001:db8::7]:6443", "https://[2001:db8::7]:6443"),
    "https-url": ("https://paris.example.com:6443/k8s", "https://paris.example.com:6443/k8s"),
    "http-url": ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
    "dotted.name": ("https://dotted.example.com", "https://dotted.example.com"),
}
"""By the name of a cluster: its ``serverAddress``, and what a kubeconfig must have for it."""


def cluster(name: str, **endpoints: object) -> dict[str, object]:
    return {
        "apiVersion": "clusterregistry.k8s.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": {"stage": "production"}},
        "spec": {"kubernetesApiEndpoints": endpoints},
    }


def registered() -> Iterator[dict[str, object]]:
    bundle = base64.b64encode(CA_BUNDLE).decode()
    for name, (address, _) in SERVERS.items():
        endpoint = {"clientCIDR": "0.0.0.0/0", "serverAddress": address}
        yield cluster(name, serverEndpoints=[endpoint])
        yield cluster(f"{name}-with-ca", serverEndpoints=[endpoint], caBundle=bundle)
    yield cluster("nowhere")


@pytest.fixture(scope="module", params=(GUIDE_RELEASES[0], GUIDE_RELEASES[-1]))
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The clusters of the kubeconfig that the tutorial's script makes, by their names."""
    home = tmp_path_factory.mktemp("home")
    directory = home / "cluster-registry"
    kubectl = programs.fetch(programs.find(f"kubectl-{request.param}"))
    items = list(registered())
    with guide_reader.reader(home, Surroundings(kubectl=kubectl, directory=directory)) as reader:
        for step in until_kubeconfig():
            assert reader.follow(step).failures == 0
        (directory / "clusters.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
        assert reader.follow(Block(info="sh", body="kubectl create -f clusters.json\n", line=1)).failures == 0
        outcome = reader.follow(script())
    assert outcome.failures == 0, outcome.printed
    return load_file(directory / "fleet.kubeconfig").clusters


def until_kubeconfig() -> list[Block]:
    """The blocks of the tutorial up to the one that sets the kubeconfig."""
    blocks = [step.commands for step in guide_reader.steps(markdown.blocks(markdown.page(TUTORIAL)))]
    last = next(number for number, block in enumerate(blocks) if block.body.startswith("export KUBECONFIG="))
    return blocks[: last + 1]


def script() -> Block:
    section = markdown.section(markdown.page(TUTORIAL), "## Use the list from a script")
    return guide_reader.steps(markdown.blocks(section))[0].commands


def test_every_cluster_with_an_address_has_the_url_of_its_server_and_its_ca(exported: dict[str, Any]) -> None:
    bundle = {"certificate-authority-data": base64.b64encode(CA_BUNDLE).decode()}
    plain = {name: {"server": url} for name, (_, url) in SERVERS.items()}
    assert exported == plain | {f"{name}-with-ca": {**server, **bundle} for name, server in plain.items()}
