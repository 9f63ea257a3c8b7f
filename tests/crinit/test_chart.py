"""The Helm chart gives the objects that crinit applies: rendered by a real Helm, and compared."""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509

from clusterregistry import __version__
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.credentials import issuance
from clusterregistry.crinit.manifests import everything
from clusterregistry.crinit.settings import Mode
from tests.crinit.test_manifests import RUNTIME_CONFIGS
from tools import programs

CHART = Path(__file__).parents[2] / "deploy" / "chart"
NAME, NAMESPACE = "fleet", "registries"
PEM = "-----BEGIN CERTIFICATE-----\nZm9v\n-----END CERTIFICATE-----\n"

ACCESS_CONFIG = """\
apiVersion: clusterregistry.k8s.io/v1alpha1
kind: AccessConfiguration
rules:
- match: {selector: "env=dev"}
  use: {none: {}}
"""

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
    "a controller": (
        Mode.STANDALONE,
        {"with-controller": "true"},
        {**STANDALONE, "controller": {"enabled": True}},
    ),
    "one controller with arguments and an access.yaml": (
        Mode.STANDALONE,
        {
            "replicas": "3",
            "with-controller": "true",
            "controller-replicas": "1",
            "controller-arg-overrides": "--secure-port=9443,--v=1",
            "access-config": ACCESS_CONFIG,
        },
        {
            **STANDALONE,
            "replicas": 3,
            "controller": {
                "enabled": True,
                "replicas": 1,
                "arguments": ["--secure-port=9443", "--v=1"],
                "accessConfig": ACCESS_CONFIG,
            },
        },
    ),
    "aggregated": (Mode.AGGREGATED, {}, {"mode": "aggregated"}),
    "an aggregated controller": (
        Mode.AGGREGATED,
        {"with-controller": "true"},
        {"mode": "aggregated", "controller": {"enabled": True}},
    ),
    "aggregated replicas": (Mode.AGGREGATED, {"replicas": "3"}, {"mode": "aggregated", "replicas": 3}),
    **{
        f"aggregated with {argument}": (
            Mode.AGGREGATED,
            {"apiserver-arg-overrides": argument},
            {"mode": "aggregated", "arguments": [argument]},
        )
        for argument in RUNTIME_CONFIGS
    },
}


FILES = {"etcd-cafile": PEM, "access-config": ACCESS_CONFIG}
"""The content of the files that flags name."""


def run_helm(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    program = programs.fetch(programs.find("helm-4.2"))
    return subprocess.run([program, *arguments], input=stdin, capture_output=True, text=True, check=False)


def helm(*arguments: str, stdin: str = "") -> str:
    done = run_helm(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout


def from_chart(values: dict[str, Any]) -> list[dict[str, Any]]:
    given = json.dumps({**values, "namespace": {"create": True}})
    rendered = helm("template", NAME, str(CHART), "--namespace", NAMESPACE, "--values", "-", stdin=given)
    return [document for document in yaml.safe_load_all(rendered) if document]


def from_crinit(mode: Mode, given: dict[str, str]) -> list[dict[str, Any]]:
    settings = settings_from_flags.settings(mode, NAME, {**given, "cluster-registry-namespace": NAMESPACE})
    wanted = issuance.Wanted(settings=settings, names=issuance.serving_names(settings), now=1_700_000_000.0)
    return everything(settings, issuance.material(wanted, {}))


def comparable(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """By kind and name, without what differs by nature: who manages it, and what is made by chance."""
    seen = json.loads(json.dumps(manifests))
    for manifest in seen:
        _blank(manifest)
        if manifest["kind"] == "Secret":
            manifest["data"] = {name: _without_chance(name, held) for name, held in manifest["data"].items()}
        if manifest["kind"] == "APIService":
            assert manifest["spec"].pop("caBundle")
    return {f"{each['kind']} {each['metadata']['name']}": each for each in seen}


def _without_chance(name: str, held: str) -> Any:
    """The content of a kubeconfig without credentials; nothing of keys, certificates and tokens."""
    return yaml.safe_load(base64.b64decode(held)) if name == "kubeconfig" else None


def _blank(value: Any) -> None:
    if isinstance(value, dict):
        value.pop("app.kubernetes.io/managed-by", None)
        for each in value.values():
            _blank(each)
    elif isinstance(value, list):
        for each in value:
            _blank(each)


def refusal(values: dict[str, Any], *command: str) -> str:
    done = run_helm(*(command or ("template", NAME)), str(CHART), "--values", "-", stdin=json.dumps(values))
    assert done.returncode != 0
    return done.stdout + done.stderr


@pytest.mark.parametrize("case", EQUAL)
def test_the_chart_gives_the_same_objects_as_crinit(case: str, tmp_path: Path) -> None:
    mode, given, values = EQUAL[case]
    for flag, content in FILES.items():
        if flag in given:
            (tmp_path / flag).write_text(content)
            given = {**given, flag: str(tmp_path / flag)}
    assert comparable(from_chart(values)) == comparable(from_crinit(mode, given))


def test_the_certificates_of_the_chart_belong_together() -> None:
    objects = {f"{each['kind']} {each['metadata']['name']}": each for each in from_chart({"mode": "aggregated"})}
    serving = objects["Secret fleet-serving"]["data"]
    authority, held = (
        x509.load_pem_x509_certificate(base64.b64decode(serving[name])) for name in ("ca.crt", "tls.crt")
    )
    held.verify_directly_issued_by(authority)
    for version in ("v1beta1", "v1alpha1"):
        assert objects[f"APIService {version}.clusterregistry.k8s.io"]["spec"]["caBundle"] == serving["ca.crt"]
    names = held.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "fleet.registries.svc" in names.get_values_for_type(x509.DNSName)


def test_the_chart_is_of_this_version_and_passes_helms_own_check() -> None:
    described = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (described["version"], described["appVersion"]) == (__version__, __version__)
    assert f"clusterregistry:{__version__}" == yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    helm("lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    "command", [("template", NAME), ("lint",), ("install", NAME, "--dry-run=client")], ids=" ".join
)
def test_a_mistyped_value_is_refused_by_its_name(command: tuple[str, ...]) -> None:
    assert "additional properties 'replcias' not allowed" in refusal({"replcias": 3}, *command)


def _with_typo(values: dict[str, Any]) -> dict[str, Any]:
    """A value that does not exist, beside each one that does."""
    inner = {name: _with_typo(value) for name, value in values.items() if isinstance(value, dict) and value}
    return {**inner, "mistyped": "x"}


def _objects(values: dict[str, Any], path: str = "") -> list[str]:
    inner = [(f"{path}/{name}", value) for name, value in values.items() if isinstance(value, dict) and value]
    return [path, *(each for name, value in inner for each in _objects(value, name))]


def test_no_object_of_the_values_takes_a_value_that_it_does_not_have() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # What is requested and limited is by names of the host cluster.
    expected = [each for each in _objects(values) if not each.endswith(("/requests", "/limits"))]
    assert {"", "/service", "/etcd", "/controller", "/etcd/resources", "/certificates/admin", "/serviceMonitor"} <= set(
        expected
    )
    said = refusal(_with_typo(values))
    for path in expected:
        assert f"at '{path}': additional properties 'mistyped' not allowed" in said


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "mode": ({"mode": "stand-alone"}, "at '/mode': value must be one of 'standalone', 'aggregated'"),
    "a number as text": ({"replicas": "3"}, "at '/replicas': got string, want integer"),
    "no replicas": ({"replicas": 0}, "at '/replicas': minimum: got 0, want 1"),
    "service type": ({"service": {"type": "Ingress"}}, "at '/service/type': value must be one of"),
    "node port": ({"service": {"nodePort": 70000}}, "at '/service/nodePort': maximum"),
    "an annotation that is no text": (
        {"service": {"annotations": {"a": True}}},
        "at '/service/annotations/a': got boolean",
    ),
    "one name": ({"serverNames": "registry.example.com"}, "at '/serverNames': got string, want array"),
    "a truth as text": ({"tokenAuth": "false"}, "at '/tokenAuth': got string, want boolean"),
    "size": ({"persistence": {"size": "ten"}}, "at '/persistence/size'"),
    "etcd without a scheme": ({"etcd": {"servers": ["etcd:2379"]}}, "at '/etcd/servers/0'"),
    "a file in the place of its content": ({"certificates": {"ca": {"key": "ca.key"}}}, "at '/certificates/ca/key'"),
    "arguments": ({"arguments": ["v=1"]}, "at '/arguments/0'"),
    "an image with a space": ({"image": "a b"}, "at '/image'"),
    "tolerations": (
        {"tolerations": [{"effects": "NoSchedule"}]},
        "at '/tolerations/0': additional properties 'effects'",
    ),
    "affinity of etcd": ({"etcd": {"affinity": {"nodes": {}}}}, "at '/etcd/affinity': additional properties 'nodes'"),
    "clients": ({"networkPolicy": {"clients": [{"cidr": "10.0.0.0/8"}]}}, "'cidr' not allowed"),
    "interval": ({"serviceMonitor": {"interval": "often"}}, "at '/serviceMonitor/interval'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_value_of_a_wrong_type_is_refused_by_its_name(case: str) -> None:
    values, complaint = WRONG[case]
    assert complaint in refusal(values)


PLACED = {
    "podAnnotations": {"example.com/team": "fleet"},
    "podLabels": {"team": "fleet"},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "system-cluster-critical",
    "resources": {"requests": {"cpu": 1, "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
}


@pytest.mark.parametrize("workload", ["fleet", "fleet-etcd", "fleet-controller"])
def test_pods_are_placed_as_the_values_say_and_those_of_other_workloads_are_not(workload: str) -> None:
    controller = {"controller": {"enabled": True, **(PLACED if workload == "fleet-controller" else {})}}
    placed: dict[str, dict[str, Any]] = {"fleet": PLACED, "fleet-etcd": {"etcd": PLACED}}
    given = placed.get(workload, {})
    values = {"replicas": 2, "imagePullSecrets": [{"name": "pull"}], **controller, **given}
    found = {
        each["metadata"]["name"]: each["spec"] for each in from_chart(values) if "template" in each.get("spec", {})
    }
    assert found.keys() == {"fleet", "fleet-etcd", "fleet-controller"}
    template = found[workload]["template"]
    assert template["spec"]["containers"][0]["resources"] == PLACED["resources"]
    assert template["metadata"]["annotations"] == PLACED["podAnnotations"]
    assert template["metadata"]["labels"]["team"] == "fleet"
    assert found[workload]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    for name, spec in found.items():
        assert spec["template"]["spec"]["imagePullSecrets"] == [{"name": "pull"}]
        assert name == workload or spec["template"]["metadata"].keys() == {"labels"}
        for field in ("nodeSelector", "tolerations", "affinity", "priorityClassName"):
            assert spec["template"]["spec"].get(field) == (PLACED[field] if name == workload else None)


def test_labels_of_pods_cannot_take_the_place_of_those_that_select_them() -> None:
    mine = {"app.kubernetes.io/instance": "other"}
    found = {each["kind"]: each for each in from_chart({"podLabels": mine})}
    deployment = found["Deployment"]["spec"]
    assert deployment["selector"]["matchLabels"].items() <= deployment["template"]["metadata"]["labels"].items()


def test_the_service_has_the_annotations_of_the_values() -> None:
    annotations = {"example.com/load-balancer": "internal"}
    services = [each for each in from_chart({"service": {"annotations": annotations}}) if each["kind"] == "Service"]
    assert [each["metadata"]["annotations"] for each in services] == [annotations]


def test_clients_of_the_server_can_be_named() -> None:
    clients = [{"ipBlock": {"cidr": "192.0.2.0/24"}}, {"namespaceSelector": {"matchLabels": {"team": "fleet"}}}]
    found = {
        f"{each['kind']} {each['metadata']['name']}": each
        for each in from_chart({"networkPolicy": {"clients": clients}})
    }
    (rule,) = found["NetworkPolicy fleet"]["spec"]["ingress"]
    assert rule == {"ports": [{"protocol": "TCP", "port": 8443}], "from": clients}


def test_a_service_monitor_comes_only_when_it_is_asked_for_and_finds_the_service() -> None:
    assert "ServiceMonitor" not in {each["kind"] for each in from_chart({"replicas": 3})}
    monitor = {"enabled": True, "labels": {"release": "prometheus"}, "tokenSecret": {"name": "scraper"}}
    found = from_chart({"replicas": 3, "serviceMonitor": {**monitor, "interval": "30s"}})
    (made,) = [each for each in found if each["kind"] == "ServiceMonitor"]
    assert made["metadata"]["labels"]["release"] == "prometheus"
    wanted = made["spec"]["selector"]["matchLabels"]
    services = [
        each for each in found if each["kind"] == "Service" and wanted.items() <= each["metadata"]["labels"].items()
    ]
    assert [each["metadata"]["name"] for each in services] == [NAME]
    (endpoint,) = made["spec"]["endpoints"]
    assert endpoint["port"] in {each["name"] for each in services[0]["spec"]["ports"]}
    assert endpoint["interval"] == "30s"
    assert endpoint["authorization"]["credentials"] == {"name": "scraper", "key": "token"}
    secrets = {each["metadata"]["name"]: each["data"] for each in found if each["kind"] == "Secret"}
    authority = endpoint["tlsConfig"]["ca"]["secret"]
    assert authority["key"] in secrets[authority["name"]]
    assert endpoint["tlsConfig"]["serverName"] == f"{NAME}.{NAMESPACE}.svc"


def test_a_service_monitor_without_a_token_is_refused_with_the_value_that_is_missing() -> None:
    said = refusal({"serviceMonitor": {"enabled": True}})
    assert (
        "serviceMonitor.tokenSecret.name: name a Secret with the token of a user in the group system:monitoring" in said
    )


def notes(values: dict[str, Any]) -> str:
    given = ["--namespace", NAMESPACE, "--values", "-"]
    return helm("install", NAME, str(CHART), "--dry-run=client", *given, stdin=json.dumps(values)).partition("NOTES:")[
        2
    ]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, "{.status.loadBalancer.ingress[0].ip}{.status.loadBalancer.ingress[0].hostname}"),
        ({"service": {"type": "NodePort"}}, "{.spec.ports[0].nodePort}"),
        ({"service": {"type": "ClusterIP"}}, f"kubectl port-forward service/{NAME} 8443:443 --namespace {NAMESPACE}"),
        (STANDALONE, "--client-certificate=fleet-admin.crt --client-key=fleet-admin.key"),
        ({"tokenAuth": False}, "No user can sign in yet"),
        ({"mode": "aggregated"}, "kubectl wait --for=condition=Available apiservice/v1beta1.clusterregistry.k8s.io"),
        ({"mode": "aggregated"}, "kubectl wait --for=condition=Available apiservice/v1alpha1.clusterregistry.k8s.io"),
        ({"audit": {"enabled": True}}, f"kubectl logs deployment/{NAME} --namespace {NAMESPACE}"),
    ],
)
def test_the_notes_tell_how_to_go_on(values: dict[str, Any], shown: str) -> None:
    said = notes(values)
    assert shown in said
    assert "system:masters" not in said
    assert ("get clusters" in said) == ("No user can sign in" not in said)


def test_every_secret_in_the_notes_is_one_of_the_chart() -> None:
    for values in ({}, STANDALONE):
        made = {each["metadata"]["name"] for each in from_chart(values) if each["kind"] == "Secret"}
        named = set(re.findall(r"get secret (\S+)", notes(values)))
        assert len(named) == 2
        assert named <= made
