"""The Helm chart gives the objects that crinit applies: rendered by a real Helm, and compared."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from clusterregistry import __version__
from clusterregistry.crinit import choosing
from clusterregistry.crinit.credentials import making
from clusterregistry.crinit.manifests import everything
from clusterregistry.crinit.settings import Mode
from tools import programs

CHART = Path(__file__).parents[2] / "deploy" / "chart"
NAME, NAMESPACE = "fleet", "registries"
PEM = "-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n"

STANDALONE: dict[str, Any] = {"certificates": {"admin": {"certificate": PEM, "key": PEM}}, "tokenAuth": False}
EQUAL: dict[str, tuple[Mode, dict[str, str], dict[str, Any]]] = {
    "standalone": (Mode.STANDALONE, {}, STANDALONE),
    "tokens, another image": (
        Mode.STANDALONE,
        {"apiserver-enable-token-auth": "true", "image": "registry.example.com/cr:2"},
        {**STANDALONE, "tokenAuth": True, "image": "registry.example.com/cr:2"},
    ),
    "a node port, a storage class and arguments": (
        Mode.STANDALONE,
        {
            "api-server-service-type": "NodePort",
            "api-server-port": "30443",
            "storage-class": "fast",
            "etcd-pv-capacity": "1Gi",
            "apiserver-arg-overrides": "--secure-port=9443,--v=1",
        },
        {
            **STANDALONE,
            "service": {"type": "NodePort", "nodePort": 30443},
            "persistence": {"storageClass": "fast", "size": "1Gi"},
            "arguments": ["--secure-port=9443", "--v=1"],
        },
    ),
    "nothing is kept": (
        Mode.STANDALONE,
        {"etcd-persistent-storage": "false"},
        {**STANDALONE, "persistence": {"enabled": False}},
    ),
    "replicas on an etcd of their own": (Mode.STANDALONE, {"replicas": "3"}, {**STANDALONE, "replicas": 3}),
    "replicas on an etcd that is not kept": (
        Mode.STANDALONE,
        {"replicas": "2", "etcd-persistent-storage": "false"},
        {**STANDALONE, "replicas": 2, "persistence": {"enabled": False}},
    ),
    "an etcd that is there": (
        Mode.STANDALONE,
        {"replicas": "2", "etcd-servers": "https://etcd.example.com:2379", "etcd-cafile": "PEM"},
        {**STANDALONE, "replicas": 2, "etcd": {"servers": ["https://etcd.example.com:2379"], "ca": PEM}},
    ),
    "no audit log, no policies": (
        Mode.STANDALONE,
        {"replicas": "3", "audit-log": "false", "network-policy": "false"},
        {**STANDALONE, "replicas": 3, "audit": {"enabled": False}, "networkPolicy": {"enabled": False}},
    ),
    "aggregated": (Mode.AGGREGATED, {}, {"mode": "aggregated"}),
    "aggregated replicas": (Mode.AGGREGATED, {"replicas": "3"}, {"mode": "aggregated", "replicas": 3}),
}


def helm(*arguments: str, stdin: str = "") -> str:
    program = programs.fetch(programs.find("helm-4.2"))
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def from_chart(values: dict[str, Any]) -> list[dict[str, Any]]:
    given = json.dumps({**values, "namespace": {"create": True}})
    rendered = helm("template", NAME, str(CHART), "--namespace", NAMESPACE, "--values", "-", stdin=given)
    return [document for document in yaml.safe_load_all(rendered) if document]


def from_crinit(mode: Mode, given: dict[str, str]) -> list[dict[str, Any]]:
    settings = choosing.settings(mode, NAME, {**given, "cluster-registry-namespace": NAMESPACE})
    wanted = making.Wanted(settings=settings, names=making.serving_names(settings), now=1_700_000_000.0)
    return everything(settings, making.material(wanted, {}))


def comparable(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """By kind and name, without what differs by nature: who manages it, and what is made by chance."""
    seen = json.loads(json.dumps(manifests))
    for manifest in seen:
        _blank(manifest)
        if manifest["kind"] == "Secret":
            manifest["data"] = sorted(manifest["data"])
        if manifest["kind"] == "APIService":
            assert manifest["spec"].pop("caBundle")
    return {f"{each['kind']} {each['metadata']['name']}": each for each in seen}


def _blank(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("app.kubernetes.io/managed-by", None)
        for each in value.values():
            _blank(each)
    elif isinstance(value, list):
        for each in value:
            _blank(each)


@pytest.mark.parametrize("case", EQUAL)
def test_the_chart_gives_the_same_objects_as_crinit(case: str, tmp_path: Path) -> None:
    mode, given, values = EQUAL[case]
    if given.get("etcd-cafile"):
        (tmp_path / "ca.pem").write_text(PEM)
        given = {**given, "etcd-cafile": str(tmp_path / "ca.pem")}
    assert comparable(from_chart(values)) == comparable(from_crinit(mode, given))


def test_the_certificates_of_the_chart_belong_together() -> None:
    objects = {f"{each['kind']} {each['metadata']['name']}": each for each in from_chart({"mode": "aggregated"})}
    serving = objects["Secret fleet-serving"]["data"]
    authority, held = (
        x509.load_pem_x509_certificate(base64.b64decode(serving[name])) for name in ("ca.crt", "tls.crt")
    )
    held.verify_directly_issued_by(authority)
    assert objects["APIService v1alpha1.clusterregistry.k8s.io"]["spec"]["caBundle"] == serving["ca.crt"]
    names = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "fleet.registries.svc" in names.get_values_for_type(x509.DNSName)


def test_the_chart_is_of_this_version_and_passes_helms_own_check() -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (described["version"], described["appVersion"]) == (__version__, __version__)
    assert f"clusterregistry:{__version__}" == yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    helm("lint", "--strict", str(CHART))
