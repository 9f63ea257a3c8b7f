"""The Helm chart of the agent gives the objects that `clusterregistry join` prints, but for namespace and Secret."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterregistry import __version__
from clusterregistry.agent.manifest import NAME, NAMESPACE, Deployed, objects
from tests.crinit.test_chart import helm, run_helm

CHART = Path(__file__).parents[2] / "deploy" / "agent-chart"
DAYS = 30 * 86400


def rendered(**values: Any) -> list[dict[str, Any]]:
    given = json.dumps(values)
    text = helm("template", NAME, str(CHART), f"--namespace={NAMESPACE}", "--values=-", stdin=given)
    return [each for each in yaml.safe_load_all(text) if each]


def by_kind(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in documents}


def test_the_chart_gives_what_join_prints() -> None:
    image = f"clusterregistry:{__version__}"
    joined = objects(Deployed(cluster="edge", kubeconfig=b"", image=image, certificate_seconds=DAYS))
    expected = {kind: each for kind, each in by_kind(joined).items() if kind not in ("Namespace", "Secret")}
    found = by_kind(rendered(cluster="edge"))
    assert found.keys() == expected.keys()
    for kind, each in expected.items():
        container = each.get("spec", {}).get("template", {}).get("spec", {}).get("containers", [{}])[0]
        theirs = found[kind].get("spec", {}).get("template", {}).get("spec", {}).get("containers", [{}])[0]
        for one in (container, theirs):
            one.get("args", []).sort()
        assert found[kind] == each


def test_values_reach_the_pod() -> None:
    found = by_kind(
        rendered(
            cluster="edge",
            identitySecret="own",
            arguments=["--interval=1m"],
            nodeSelector={"kubernetes.io/os": "linux"},
            podLabels={"team": "edge"},
            tolerations=[{"operator": "Exists"}],
        )
    )
    template = found["Deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert "--interval=1m" in container["args"]
    assert f"--kubeconfig-secret={NAMESPACE}/own" in container["args"]
    assert found["Role"]["rules"][0]["resourceNames"] == ["own"]
    assert template["metadata"]["labels"]["team"] == "edge"
    assert template["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}


@pytest.mark.parametrize("values", [{}, {"cluster": ""}, {"cluster": "Edge"}, {"cluster": "edge", "image": ""}])
def test_values_that_cannot_be_are_refused(values: dict[str, Any]) -> None:
    done = run_helm("template", NAME, str(CHART), "--values=-", stdin=json.dumps(values))
    assert done.returncode != 0
    assert "values don't meet the specifications of the schema" in done.stderr
