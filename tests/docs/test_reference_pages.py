"""The reference pages name everything that there is, and nothing else."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

import clusterregistry
from clusterregistry.apiserver.filters import metrics
from tests.docs import markdown
from tools import exchanges, live_server
from tools.live_server import LiveServer

SOURCE = Path(clusterregistry.__file__).parent
ENDPOINTS = markdown.page("docs/reference/endpoints.md")
METHODS = {"get", "put", "post", "delete", "patch"}


@dataclass(frozen=True)
class Caller:
    """Sends requests as an administrator by default; without a token, as an anonymous user."""

    server: LiveServer

    def __call__(self, method: str, path: str, *, token: str = live_server.ADMIN_TOKEN) -> tuple[int, str]:
        access = exchanges.access(self.server.url, ca_file=self.server.ca_file, token=token)
        answer = exchanges.send(access, method, path, content_type="application/json")
        return answer.status, answer.body.decode(errors="replace")


@pytest.fixture(scope="module")
def call(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    command = [sys.executable, "-m", "clusterregistry"]
    with live_server.running(tmp_path_factory.mktemp("server"), command=command) as server:
        yield Caller(server)


# Endpoints


EVERYBODY = "Readable by everybody"
USERS = "Readable by every user who has signed in"
NOBODY = "Not readable"
ADMINISTRATORS = "Readable by members of `system:masters`"


def documented_endpoints(text: str = ENDPOINTS) -> dict[str, set[str]]:
    """The methods of each path in the tables whose first column is a path."""
    rows = [(markdown.code_in(row[0]), markdown.code_in(row[1])) for row in markdown.table_rows(text)]
    return {paths[0]: set(methods) for paths, methods in rows if paths[0].startswith("/")}


def described_by_openapi(call: Caller) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for document in json.loads(call("GET", "/openapi/v3")[1])["paths"].values():
        for path, item in json.loads(call("GET", document["serverRelativeURL"])[1])["paths"].items():
            found[path.rstrip("/")] = {method.upper() for method in item.keys() & METHODS}
    return found


def health_checks(call: Caller) -> set[str]:
    endpoints = ("/livez", "/readyz", "/healthz")
    lines = {endpoint: call("GET", f"{endpoint}?verbose")[1] for endpoint in endpoints}
    return {*endpoints} | {
        f"{endpoint}/{name}" for endpoint in lines for name in re.findall(r"\]([\w-]+) ", lines[endpoint])
    }


def plain_paths() -> set[str]:
    """The paths that stand in the code which finds out who answers."""
    texts = [(SOURCE / name).read_text() for name in ("apiserver/routes.py", "apiserver/discovery/endpoints.py")]
    constants = (node for text in texts for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant))
    return {
        node.value for node in constants if isinstance(node.value, str) and re.fullmatch(r"(/[a-z0-9]+)+", node.value)
    }


def openapi_documents(call: Caller) -> set[str]:
    return {f"/openapi/v3/{name}" for name in json.loads(call("GET", "/openapi/v3")[1])["paths"]}


def profiles(call: Caller) -> set[str]:
    return {"/debug/pprof", *re.findall(r"^(/debug/pprof/\w+) ", call("GET", "/debug/pprof")[1], re.MULTILINE)}


def group_paths(call: Caller) -> set[str]:
    groups = json.loads(call("GET", "/apis")[1])["groups"]
    names = [group["name"] for group in groups]
    return {f"/apis/{name}" for name in (*names, *(each["groupVersion"] for one in groups for each in one["versions"]))}


def watch_paths(call: Caller) -> set[str]:
    groups = json.loads(call("GET", "/apis")[1])["groups"]
    prefixes = [f"/apis/{version['groupVersion']}" for group in groups for version in group["versions"]]
    watched = [
        f"{prefix}/watch/{resource['name']}"
        for prefix in prefixes
        for resource in json.loads(call("GET", prefix)[1])["resources"]
        if "watch" in resource["verbs"] and not resource["namespaced"]  # OpenAPI has the paths of the others
    ]
    return {f"{path}{rest}" for path in watched for rest in ("", "/{name}")}


def test_every_endpoint_is_documented_and_none_that_is_gone(call: Caller) -> None:
    served = {*described_by_openapi(call), *health_checks(call), *plain_paths(), *openapi_documents(call)}
    served |= group_paths(call) | watch_paths(call) | profiles(call) | {"/api/v1"}
    assert served == documented_endpoints().keys()


def test_the_methods_are_those_of_the_open_api(call: Caller) -> None:
    documented = documented_endpoints()
    described = described_by_openapi(call)
    assert {path: documented[path] for path in described} == described


def test_a_documented_endpoint_takes_its_methods_and_no_others(call: Caller) -> None:
    for path, methods in documented_endpoints().items():
        # Nothing is to be deleted for good: the default roles among it open the health and discovery pages.
        bounded = "?timeoutSeconds=1" if "/watch/" in path else "?seconds=0.1&dryRun=All"
        there = path.replace("{name}", "nobody").replace("{namespace}", "default") + bounded
        for method in sorted(methods):
            status, answer = call(method, there)
            assert status not in (404, 405) or '"name":"nobody"' in answer, (method, path, answer)
        for method in sorted({each.upper() for each in METHODS} - methods):
            assert call(method, there)[0] in (400, 404, 405), (method, path)


def readers() -> Iterator[tuple[str, str]]:
    """Each path, and who may read it by the first words of its section."""
    for heading in re.findall(r"^## .*$", ENDPOINTS, re.MULTILINE):
        section = markdown.section(ENDPOINTS, heading)
        who = next(words for words in (EVERYBODY, USERS, ADMINISTRATORS, NOBODY) if section.strip().startswith(words))
        yield from ((path, who) for path in documented_endpoints(section))


def test_an_endpoint_is_readable_as_documented(call: Caller) -> None:
    refused = (403, 403)
    expected = {EVERYBODY: (200, 200), USERS: (403, 200), ADMINISTRATORS: refused, NOBODY: refused}
    for path, who in readers():
        there = path.replace("{name}", "nobody")
        anonymous, user = call("GET", there, token="")[0], call("GET", there, token="viewertoken")[0]
        assert (anonymous, user) == expected[who], path


# Errors


def reasons_in_the_code() -> set[tuple[int, str]]:
    """The code and reason of every ``failure(...)``, wherever it is called."""
    trees = [ast.parse(path.read_text()) for path in SOURCE.rglob("*.py")]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call for call in calls if is_failure(call.func)]
    return {(ast.literal_eval(call.args[0]), ast.literal_eval(call.args[1])) for call in named}


def is_failure(function: ast.expr) -> bool:
    """Whether it is ``failure`` or ``errors.failure``."""
    match function:
        case ast.Name(id="failure") | ast.Attribute(value=ast.Name(id="errors"), attr="failure"):
            return True
    return False


def test_every_error_is_documented_and_none_that_is_gone() -> None:
    rows = list(markdown.table_rows(markdown.page("docs/reference/errors.md")))
    documented = [(int(row[0]), *markdown.code_in(row[1])) for row in rows]
    assert documented == sorted(documented)
    assert set(documented) == reasons_in_the_code()


# Metrics


def test_every_metric_is_documented_and_none_that_is_gone(call: Caller) -> None:
    rows = list(markdown.table_rows(markdown.page("docs/reference/metrics.md")))
    documented = {(markdown.code_in(row[0])[0], row[1], frozenset(markdown.code_in(row[2]))) for row in rows}
    if sys.platform != "linux":
        documented = {metric for metric in documented if not metric[0].startswith("process_")}
    assert documented == served_metrics(call)


def served_metrics(call: Caller) -> set[tuple[str, str, frozenset[str]]]:
    """The name, type and labels of each metric; the requests before this one have given all of them a value."""
    return {
        (
            f"{family.name}_total" if family.type == "counter" else family.name,
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels) - {"le"},
        )
        for family in text_string_to_metric_families(call("GET", "/metrics")[1])
    }


def test_the_verbs_of_the_metrics_are_documented() -> None:
    page = markdown.page("docs/reference/metrics.md")
    sentence = re.search(r"`verb` is (.*?)\.", page, re.DOTALL)
    assert sentence
    assert markdown.code_in(sentence[1]) == [*metrics._VERBS.values(), "other"]
