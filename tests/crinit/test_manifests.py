"""The manifests of crinit for every kind of flags: valid references, restricted pods, one owner."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from clusterregistry.apiserver.options import runtime_config
from clusterregistry.crinit import settings_from_flags
from clusterregistry.crinit.credentials import issuance
from clusterregistry.crinit.manifests import apiservices, controller, everything
from clusterregistry.crinit.manifests.objects import COMPONENT, INSTANCE, MANAGED_BY
from clusterregistry.crinit.settings import Mode
from clusterregistry.registry.cluster import cluster_resource
from clusterregistry.registry.clusterset import cluster_set_resource
from tests.product import load

NOW = 1_700_000_000.0
VARIANTS: dict[str, tuple[Mode, dict[str, str]]] = {
    "standalone": (Mode.STANDALONE, {}),
    "tokens": (Mode.STANDALONE, {"apiserver-enable-token-auth": "true"}),
    "not persistent": (Mode.STANDALONE, {"etcd-persistent-storage": "false"}),
    "own etcd": (Mode.STANDALONE, {"replicas": "3"}),
    "own etcd, not persistent": (Mode.STANDALONE, {"replicas": "2", "etcd-persistent-storage": "false"}),
    "external etcd": (Mode.STANDALONE, {"etcd-servers": "http://etcd.example.com:2379"}),
    "controller": (Mode.STANDALONE, {"with-controller": "true", "replicas": "3"}),
    "one controller": (Mode.STANDALONE, {"with-controller": "true", "controller-replicas": "1"}),
    "aggregated": (Mode.AGGREGATED, {}),
    "aggregated controller": (Mode.AGGREGATED, {"with-controller": "true"}),
    "aggregated replicas": (Mode.AGGREGATED, {"replicas": "2"}),
}
BOTH = ["v1beta1", "v1alpha1"]
RUNTIME_CONFIGS: dict[str, list[str]] = {
    "--runtime-config=clusterregistry.k8s.io/v1beta1=false": ["v1alpha1"],
    "--runtime-config=clusterregistry.k8s.io/v1alpha1=0, events.k8s.io/v1=true": ["v1beta1"],
    "--runtime-config=clusterregistry.k8s.io/v1alpha1/clusters=F": BOTH,
    "--runtime-config=clusterregistry.k8s.io/v1alpha1/clusters=F,clusterregistry.k8s.io/v1alpha1/clustersets=0": [
        "v1beta1"
    ],
    "--runtime-config=api/all=false,clusterregistry.k8s.io/v1alpha1/clustersets=true": ["v1alpha1"],
    "--runtime-config=api/alpha=false": ["v1beta1"],
    "--runtime-config=api/beta=false,api/all=true": ["v1alpha1"],
    "--runtime-config=clusterregistry.k8s.io/v1beta1=true,api/all=false": ["v1beta1"],
    "--runtime-config=api/all=false,v1=true": [],
    "--runtime-config=events.k8s.io/v1=false": BOTH,
    "--runtime-config=": BOTH,
}
"""By argument of the server, the versions of clusters that it serves then."""


def manifests_of(mode: Mode, given: dict[str, str]) -> list[dict[str, Any]]:
    settings = settings_from_flags.settings(mode, "fleet", given)
    wanted = issuance.Wanted(settings=settings, names=issuance.serving_names(settings), now=NOW)
    return everything(settings, issuance.material(wanted, {}))


@pytest.fixture(params=VARIANTS)
def manifests(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    return manifests_of(*VARIANTS[request.param])


def named(manifests: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in manifests if each["kind"] == kind}


def pods(manifests: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in manifests:
        if each["kind"] in ("Deployment", "StatefulSet"):
            yield each


def _is_ours(volume: dict[str, Any]) -> bool:
    """Whether a volume is a Secret that is among the manifests: an operator may leave out an optional one."""
    return "secret" in volume and not volume["secret"].get("optional")


def test_every_object_is_unique_and_has_the_labels_of_its_registry(manifests: list[dict[str, Any]]) -> None:
    keys = [(each["kind"], each["metadata"].get("namespace"), each["metadata"]["name"]) for each in manifests]
    assert len(keys) == len(set(keys))
    for each in manifests:
        labels = each["metadata"]["labels"]
        assert labels[MANAGED_BY] == "crinit"
        assert each["kind"] == "Namespace" or labels[INSTANCE] == "fleet"


def test_pods_pass_the_restricted_level(manifests: list[dict[str, Any]]) -> None:
    allowed = {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
    for workload in pods(manifests):
        pod = workload["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not pod.keys() & {"hostNetwork", "hostPID", "hostIPC"}
        assert all(set(volume) - {"name"} <= allowed for volume in pod["volumes"])
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert {"requests", "limits"} <= container["resources"].keys()
            assert {"startupProbe", "livenessProbe", "readinessProbe"} <= container.keys()


def test_every_reference_leads_to_an_object(manifests: list[dict[str, Any]]) -> None:
    secrets, claims = named(manifests, "Secret"), named(manifests, "PersistentVolumeClaim")
    config_maps = named(manifests, "ConfigMap")
    accounts, services = named(manifests, "ServiceAccount"), named(manifests, "Service")
    for workload in pods(manifests):
        pod = workload["spec"]["template"]["spec"]
        assert pod["serviceAccountName"] in accounts
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        templates = {each["metadata"]["name"] for each in workload["spec"].get("volumeClaimTemplates", [])}
        mounts = {mount["name"]: mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"]}
        assert mounts.keys() == volumes.keys() | templates
        for volume in volumes.values():
            if "configMap" in volume:
                assert volume["configMap"]["name"] in config_maps
            if _is_ours(volume):
                held = secrets[volume["secret"]["secretName"]]["data"]
                assert all(item["key"] in held for item in volume["secret"].get("items", []))
            if "persistentVolumeClaim" in volume:
                assert volume["persistentVolumeClaim"]["claimName"] in claims
        if "serviceName" in workload["spec"]:
            assert workload["spec"]["serviceName"] in services
    for api in named(manifests, "APIService").values():
        assert api["spec"]["service"]["name"] in services


def test_files_in_arguments_are_mounted(manifests: list[dict[str, Any]]) -> None:
    secrets = named(manifests, "Secret")
    for workload in pods(manifests):
        pod = workload["spec"]["template"]["spec"]
        files = set()
        for mount in pod["containers"][0]["volumeMounts"]:
            volume: dict[str, Any] = next((each for each in pod["volumes"] if each["name"] == mount["name"]), {})
            if "configMap" in volume:
                held = set(named(manifests, "ConfigMap")[volume["configMap"]["name"]]["data"])
                files |= {f"{mount['mountPath']}/{name}" for name in held}
            if _is_ours(volume):
                only = {item["key"] for item in volume["secret"].get("items", [])}
                held = only or set(secrets[volume["secret"]["secretName"]]["data"])
                files |= {f"{mount['mountPath']}/{name}" for name in held}
        values = [argument.partition("=")[2] for argument in pod["containers"][0]["args"]]
        wanted = {value for value in values if value.startswith("/etc/")}
        assert wanted
        assert wanted <= files


def test_services_and_budgets_select_the_pods_of_one_workload(manifests: list[dict[str, Any]]) -> None:
    labels = [workload["spec"]["template"]["metadata"]["labels"] for workload in pods(manifests)]
    selectors = [each["spec"]["selector"] for each in named(manifests, "Service").values()]
    selectors += [each["spec"]["selector"]["matchLabels"] for each in named(manifests, "PodDisruptionBudget").values()]
    for selector in selectors:
        assert sum(selector.items() <= each.items() for each in labels) == 1
    for workload in pods(manifests):
        assert (
            workload["spec"]["selector"]["matchLabels"].items()
            <= workload["spec"]["template"]["metadata"]["labels"].items()
        )


def test_no_pod_mounts_the_key_of_an_authority(manifests: list[dict[str, Any]]) -> None:
    secrets = named(manifests, "Secret")
    for workload in pods(manifests):
        for volume in workload["spec"]["template"]["spec"]["volumes"]:
            if _is_ours(volume):
                assert "ca.key" not in secrets[volume["secret"]["secretName"]]["data"]


def test_a_policy_selects_the_pods_of_one_workload_and_each_workload_has_one(manifests: list[dict[str, Any]]) -> None:
    labels = [workload["spec"]["template"]["metadata"]["labels"] for workload in pods(manifests)]
    policies = named(manifests, "NetworkPolicy")
    assert policies.keys() == {workload["metadata"]["name"] for workload in pods(manifests)}
    for policy in policies.values():
        selector = policy["spec"]["podSelector"]["matchLabels"]
        assert sum(selector.items() <= each.items() for each in labels) == 1


def test_all_clients_reach_the_server_and_only_our_pods_reach_etcd() -> None:
    manifests = manifests_of(Mode.STANDALONE, {"replicas": "3"})
    policies = named(manifests, "NetworkPolicy")
    (rule,) = policies["fleet"]["spec"]["ingress"]
    assert rule == {"ports": [{"protocol": "TCP", "port": 8443}]}
    allowed = {
        each["ports"][0]["port"]: [peer["podSelector"]["matchLabels"][COMPONENT] for peer in each["from"]]
        for each in policies["fleet-etcd"]["spec"]["ingress"]
    }
    assert allowed == {2379: ["server", "etcd"], 2380: ["etcd"]}
    for rule in policies["fleet-etcd"]["spec"]["ingress"]:
        assert all(peer["podSelector"]["matchLabels"][INSTANCE] == "fleet" for peer in rule["from"])


def test_etcd_listens_on_the_ports_of_its_policy_alone_and_always_with_tls() -> None:
    manifests = manifests_of(Mode.STANDALONE, {"replicas": "3"})
    container = named(manifests, "StatefulSet")["fleet-etcd"]["spec"]["template"]["spec"]["containers"][0]
    listening = [each.partition("=")[2] for each in container["args"] if each.startswith("--listen-")]
    assert listening == ["https://0.0.0.0:2379", "https://0.0.0.0:2380"]
    assert {"--client-cert-auth=true", "--peer-client-cert-auth=true"} <= set(container["args"])
    policy = named(manifests, "NetworkPolicy")["fleet-etcd"]["spec"]["ingress"]
    assert {rule["ports"][0]["port"] for rule in policy} == {each["containerPort"] for each in container["ports"]}


def test_policies_and_the_audit_log_can_be_switched_off() -> None:
    off = manifests_of(Mode.STANDALONE, {"replicas": "3", "network-policy": "false", "audit-log": "false"})
    assert named(off, "NetworkPolicy") == {}
    arguments = named(off, "Deployment")["fleet"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [each for each in arguments if "audit" in each] == []


@pytest.mark.parametrize("mode", list(Mode))
def test_the_audit_log_is_on_and_can_be_redirected(mode: Mode) -> None:
    for given, path in (({}, "-"), ({"apiserver-arg-overrides": "--audit-log-path=/tmp/audit"}, "/tmp/audit")):
        deployment = named(manifests_of(mode, given), "Deployment")["fleet"]
        arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
        assert [each for each in arguments if "audit" in each] == [f"--audit-log-path={path}"]


@pytest.mark.parametrize("variant", ["standalone", "tokens", "own etcd", "external etcd"])
def test_the_server_accepts_its_arguments(variant: str, tmp_path: Any) -> None:
    """With the files of the Secrets at the paths of the mounts."""
    manifests = manifests_of(*VARIANTS[variant])
    deployment = named(manifests, "Deployment")["fleet"]["spec"]["template"]["spec"]
    arguments = deployment["containers"][0]["args"]
    volumes = {each["name"]: each for each in deployment["volumes"]}
    for mount in deployment["containers"][0]["volumeMounts"]:
        place = tmp_path / mount["name"]
        place.mkdir()
        if "secret" in volumes[mount["name"]]:
            content = named(manifests, "Secret")[volumes[mount["name"]]["secret"]["secretName"]]["data"]
            for name, data in content.items():
                (place / name).write_bytes(base64.b64decode(data))
        arguments = [each.replace(f"={mount['mountPath']}", f"={place}") for each in arguments]
    completed = load(arguments, {})
    assert completed.serving.secure_port == 8443


def test_the_old_pod_ends_before_the_new_one_attaches_the_volume() -> None:
    deployment = named(manifests_of(Mode.STANDALONE, {}), "Deployment")["fleet"]
    assert deployment["spec"]["strategy"] == {"type": "Recreate"}
    assert deployment["spec"]["replicas"] == 1


def test_replicas_roll_and_are_drained_one_by_one() -> None:
    manifests = manifests_of(Mode.STANDALONE, {"replicas": "3"})
    assert named(manifests, "Deployment")["fleet"]["spec"]["strategy"]["type"] == "RollingUpdate"
    assert named(manifests, "PodDisruptionBudget").keys() == {"fleet", "fleet-etcd"}
    assert named(manifests, "PersistentVolumeClaim") == {}


def test_an_aggregated_registry_may_delegate_and_a_standalone_one_has_no_rights() -> None:
    aggregated = manifests_of(Mode.AGGREGATED, {})
    assert {each["roleRef"]["name"] for each in aggregated if "roleRef" in each} == {
        "system:auth-delegator",
        "extension-apiserver-authentication-reader",
    }
    standalone = manifests_of(Mode.STANDALONE, {})
    assert [each for each in standalone if "roleRef" in each] == []
    pod = named(standalone, "Deployment")["fleet"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False


def test_both_versions_are_registered_and_clients_prefer_the_one_that_the_server_prefers() -> None:
    specs = [each["spec"] for each in named(manifests_of(Mode.AGGREGATED, {}), "APIService").values()]
    by_priority = sorted(specs, key=lambda spec: -int(spec["versionPriority"]))
    assert [spec["version"] for spec in by_priority] == [each.name for each in cluster_resource("off").versions]
    assert len({spec["versionPriority"] for spec in specs}) == len(specs)
    assert len({(spec["group"], spec["groupPriorityMinimum"]) for spec in specs}) == 1
    for name, each in named(manifests_of(Mode.AGGREGATED, {}), "APIService").items():
        assert name == f"{each['spec']['version']}.clusterregistry.k8s.io"


@pytest.mark.parametrize("argument", RUNTIME_CONFIGS)
def test_versions_that_the_server_does_not_serve_are_not_registered(argument: str) -> None:
    given = load([argument], {}).features.runtime_config
    resources = runtime_config.served([cluster_resource("off"), cluster_set_resource()], given)
    served = {version.name for resource in resources for version in resource.versions}
    assert served == set(RUNTIME_CONFIGS[argument])
    found = named(manifests_of(Mode.AGGREGATED, {"apiserver-arg-overrides": argument}), "APIService")
    assert [each["spec"]["version"] for each in found.values()] == RUNTIME_CONFIGS[argument]


def test_a_runtime_config_that_the_server_refuses_is_left_to_the_server() -> None:
    assert list(apiservices.served(["--runtime-config=v1beta1"])) == BOTH
    assert list(apiservices.served(["--runtime-config=api/beta=perhaps"])) == BOTH


def test_overrides_replace_arguments_and_add_others() -> None:
    given = {"apiserver-arg-overrides": "--secure-port=9443,--authorization-mode=RBAC,Webhook"}
    container = named(manifests_of(Mode.STANDALONE, given), "Deployment")["fleet"]["spec"]["template"]["spec"][
        "containers"
    ][0]
    assert container["args"][1] == "--secure-port=9443"
    assert container["args"][-1] == "--authorization-mode=RBAC,Webhook"
    assert len({argument.partition("=")[0] for argument in container["args"]}) == len(container["args"])


def controller_pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    pod: dict[str, Any] = named(manifests, "Deployment")["fleet-controller"]["spec"]["template"]["spec"]
    return pod


def test_a_controller_comes_only_when_it_is_asked_for() -> None:
    for mode in Mode:
        assert "controller" not in str(manifests_of(mode, {}))
        assert named(manifests_of(mode, {"with-controller": "true"}), "Deployment").keys() == {
            "fleet",
            "fleet-controller",
        }


def test_a_controller_of_a_standalone_registry_has_a_certificate_and_no_rights_in_the_host_cluster() -> None:
    manifests = manifests_of(Mode.STANDALONE, {"with-controller": "true"})
    assert [each for each in manifests if "rbac" in each["apiVersion"]] == []
    assert controller_pod(manifests)["automountServiceAccountToken"] is False
    held = {
        name: base64.b64decode(text) for name, text in named(manifests, "Secret")["fleet-controller"]["data"].items()
    }
    subject = x509.load_pem_x509_certificate(held["tls.crt"]).subject.rfc4514_string()
    assert subject == "CN=system:clusterregistry:controller"
    config = json.loads(held["kubeconfig"])
    assert config["clusters"][0]["cluster"]["server"] == "https://fleet.clusterregistry.svc"
    named_files = {*config["clusters"][0]["cluster"].values(), *config["users"][0]["user"].values()} & held.keys()
    assert named_files == {"ca.crt", "tls.crt", "tls.key"}


def test_a_controller_of_an_aggregated_registry_writes_status_leases_and_events_and_nothing_else() -> None:
    manifests = manifests_of(Mode.AGGREGATED, {"with-controller": "true"})
    assert "fleet-controller" not in named(manifests, "Secret")
    assert controller_pod(manifests)["automountServiceAccountToken"] is True
    rules = [
        (resource, verb)
        for kind in ("ClusterRole", "Role")
        for role in named(manifests, kind).values()
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]
    writes = {resource for resource, verb in rules if verb not in ("get", "list", "watch")}
    assert writes == {"clusters/status", "leases", "events"}
    assert not {verb for _, verb in rules} & {"*", "delete", "deletecollection", "impersonate", "escalate", "bind"}
    (lease_role,) = named(manifests, "Role").values()
    assert lease_role["metadata"]["namespace"] == "clusterregistry"
    subjects = [
        subject
        for each in manifests
        if each.get("roleRef", {}).get("name", "").endswith("controller")
        for subject in each["subjects"]
    ]
    account = {"kind": "ServiceAccount", "name": "fleet-controller", "namespace": "clusterregistry"}
    assert subjects == [account, account]


def test_the_objects_that_a_controller_may_have_are_all_that_it_has() -> None:
    for mode in Mode:
        settings = settings_from_flags.settings(mode, "fleet", {"with-controller": "true"})
        possible = {(each["kind"], each["metadata"]["name"]) for each in controller.possible_objects(settings)}
        made = {
            (each["kind"], each["metadata"]["name"])
            for each in manifests_of(mode, {"with-controller": "true"})
            if each["metadata"]["labels"].get(COMPONENT) == "controller"
        }
        assert made - possible == {("NetworkPolicy", "fleet-controller")}


def test_an_access_yaml_is_given_to_the_controller_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    file.write_text("# mine\n")
    manifests = manifests_of(Mode.STANDALONE, {"with-controller": "true", "access-config": str(file)})
    assert named(manifests, "ConfigMap")["fleet-access"]["data"] == {"access.yaml": "# mine\n"}
