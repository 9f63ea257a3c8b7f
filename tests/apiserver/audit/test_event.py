"""The shape of events."""

from __future__ import annotations

import json
from typing import Any

import pytest

from clusterregistry.api.clusterregistry.credential_patterns import find_credential
from clusterregistry.apimachinery.codecs import protobuf_codec
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.audit import trail as bodies
from clusterregistry.apiserver.audit.event import Renderer
from clusterregistry.apiserver.audit.redaction import MASK, Masker
from clusterregistry.apiserver.audit.settings import REQUEST_RECEIVED, RESPONSE_COMPLETE, Level, Stage
from clusterregistry.apiserver.audit.trail import LARGEST_NAMING_BODY, Event, Trail
from clusterregistry.apiserver.authn.user import User
from clusterregistry.apiserver.authz.interface import Decision, Verdict
from clusterregistry.apiserver.endpoints.encoding import PROTOBUF_TYPE as PROTOBUF
from clusterregistry.apiserver.endpoints.encoding import json_response
from clusterregistry.apiserver.endpoints.source_addresses import source_addresses
from clusterregistry.apiserver.http.response import Response, text_response
from tests.apiserver.api.objects import CLUSTERS, GROUP_VERSION, MERGE_PATCH, cluster, path_of
from tests.apiserver.audit.trails import RECEIVED, Sent, trail

RENDERER = Renderer(Masker(find_credential))
JSON = "application/json"


def rendered(made: Trail, stage: Stage = RESPONSE_COMPLETE) -> dict[str, Any]:
    line = RENDERER.line(Event(made, stage, RECEIVED + 0.5))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    event: dict[str, Any] = json.loads(line)
    return event


def answered(request: Sent, answer: Response, level: Level = Level.RequestResponse, **recording: Any) -> dict[str, Any]:
    made = trail(request, level, **recording)
    made.answered(request, answer)
    return rendered(made)


def body_of(value: Any) -> bytes:
    return json.dumps(value).encode()


def creation(value: Any, content_type: str = JSON) -> Sent:
    return Sent("POST", CLUSTERS, body=value if isinstance(value, bytes) else body_of(value), content_type=content_type)


def test_an_event_has_the_fields_of_kube_apiserver_in_its_order() -> None:
    request = Sent("POST", f"{CLUSTERS}?a=b", body=body_of(cluster("a")), content_type=JSON, user_agent="curl/8")
    made = trail(request)
    request.decision = Decision(Verdict.ALLOW, "because")
    request.user = User("joe", groups=("g",), extra={"why": ("so",)})
    made.answered(request, json_response({"kind": "Cluster"}, status=201))
    event = rendered(made)
    assert list(event.items()) == [
        ("kind", "Event"),
        ("apiVersion", "audit.k8s.io/v1"),
        ("level", "RequestResponse"),
        ("auditID", "the-id"),
        ("stage", "ResponseComplete"),
        ("requestURI", f"{CLUSTERS}?a=b"),
        ("verb", "create"),
        ("user", {"username": "jane", "uid": "42", "groups": ["editors", "system:authenticated"]}),
        ("impersonatedUser", {"username": "joe", "groups": ["g"], "extra": {"why": ["so"]}}),
        ("sourceIPs", ["127.0.0.1"]),
        ("userAgent", "curl/8"),
        (
            "objectRef",
            {
                "resource": "clusters",
                "name": "a",
                "apiGroup": "clusterregistry.k8s.io",
                "apiVersion": "v1alpha1",
            },
        ),
        ("responseStatus", {"metadata": {}, "code": 201}),
        ("requestObject", cluster("a")),
        ("responseObject", {"kind": "Cluster"}),
        ("requestReceivedTimestamp", "2030-03-17T17:46:40.250000Z"),
        ("stageTimestamp", "2030-03-17T17:46:40.750000Z"),
        (
            "annotations",
            {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "because"},
        ),
    ]


def test_the_first_event_knows_nothing_of_the_outcome() -> None:
    request = creation(cluster("a"))
    made = trail(request)
    made.answered(request, json_response({}))
    event = rendered(made, REQUEST_RECEIVED)
    assert {"responseStatus", "requestObject", "responseObject", "annotations", "impersonatedUser"}.isdisjoint(event)
    assert "name" not in event["objectRef"]


@pytest.mark.parametrize(
    ("level", "objects"),
    [
        (Level.Metadata, set()),
        (Level.Request, {"requestObject"}),
        (Level.RequestResponse, {"requestObject", "responseObject"}),
    ],
)
def test_a_level_decides_on_the_bodies(level: Level, objects: set[str]) -> None:
    event = answered(creation(cluster("a")), json_response(cluster("a")), level)
    assert {name for name in event if name.endswith("Object")} == objects
    assert event["objectRef"]["name"] == "a"


def test_an_update_names_its_object() -> None:
    obj = cluster("a", uid="u", resourceVersion="7")
    event = answered(Sent("PUT", path_of("a"), body=body_of(obj), content_type=JSON), json_response(obj))
    assert (event["objectRef"]["uid"], event["objectRef"]["resourceVersion"]) == ("u", "7")


def test_a_large_body_is_not_read_for_a_name() -> None:
    large = cluster("a", annotations={"x": "y" * LARGEST_NAMING_BODY})
    assert "name" not in answered(creation(large), json_response({}), Level.Metadata)["objectRef"]


def test_an_error_has_its_reason() -> None:
    request = Sent("GET", path_of("a"))
    made = trail(request, Level.Metadata)
    request.decision = Decision(Verdict.NO_OPINION, "no rule")
    made.failed(request, errors.forbidden(group="g", resource="r", name="n", detail="no").status)
    event = rendered(made)
    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": 'r.g "n" is forbidden: no',
        "reason": "Forbidden",
        "details": {"name": "n", "group": "g", "kind": "r"},
        "code": 403,
    }
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"


def test_a_delete_names_the_removed_object() -> None:
    status = errors.success({"name": "a", "uid": "u"})
    event = answered(Sent("DELETE", path_of("a")), json_response(status), Level.Metadata)
    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "uid": "u"},
        "code": 200,
    }


def test_yaml_is_shown_as_json() -> None:
    event = answered(creation(b"kind: Cluster\nmetadata: {name: a}", "application/yaml"), text_response("ok"))
    assert event["requestObject"] == {"kind": "Cluster", "metadata": {"name": "a"}}
    assert "responseObject" not in event


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"{", JSON),
        (b"k8s\x00\x01", "application/vnd.kubernetes.protobuf"),
        (b": :\n- [", "application/yaml"),
        (b"\xff\xfe", "application/yaml"),
        (b"", JSON),
        (b'{"a": ' + b"9" * 400 + b"}", JSON),
        (b"[" * 500 + b"]" * 500, JSON),
        (b"[" * 5000 + b"]" * 5000, JSON),
    ],
)
def test_a_body_that_cannot_be_shown_is_left_out(content: bytes, content_type: str) -> None:
    event = answered(creation(content, content_type), text_response("no", status=400))
    assert event["responseStatus"]["code"] == 400
    assert "requestObject" not in event


def test_a_body_with_broken_characters_is_mended() -> None:
    assert answered(creation(b'{"a": "\\ud800"}'), json_response({}))["requestObject"] == {"a": "\ufffd"}


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (body_of("x" * bodies.LARGEST), JSON),
        (b"a: " + b"x" * bodies.LARGEST_YAML, "application/yaml"),
    ],
)
def test_a_body_that_is_too_large_is_left_out_and_said_to_be(content: bytes, content_type: str) -> None:
    event = answered(creation(content, content_type), json_response({}))
    assert "requestObject" not in event
    assert event["annotations"] == {"audit.k8s.io/truncated": "true"}


def test_a_large_answer_is_left_out_and_not_kept_in_memory() -> None:
    request = Sent("GET", CLUSTERS)
    made = trail(request)
    made.answered(request, json_response("x" * bodies.LARGEST))
    assert made.size < 2000
    event = rendered(made)
    assert "responseObject" not in event
    assert event["annotations"] == {"audit.k8s.io/truncated": "true"}


def test_what_proxies_and_webhooks_say_is_masked_too() -> None:
    request = Sent("GET", CLUSTERS, user=User("jane", extra={"id-token": ("t0ps3cret",), "why": ("so",)}))
    made = trail(request)
    request.decision = Decision(Verdict.ALLOW, "token=t0ps3cret is good")
    made.answered(request, json_response({}))
    event = rendered(made)
    assert event["user"]["extra"] == {"id-token": [MASK], "why": ["so"]}
    assert event["annotations"]["authorization.k8s.io/reason"] == f"token={MASK} is good"


def test_managed_fields_are_left_out_on_demand() -> None:
    managed = cluster("a", managedFields=[{"manager": "m"}])
    listed = {"kind": "ClusterList", "metadata": {}, "items": [managed, 7]}
    shown = answered(creation(managed), json_response(listed))
    assert (shown["requestObject"], shown["responseObject"]) == (managed, listed)
    event = answered(creation(managed), json_response(listed), omits_managed_fields=True)
    assert event["requestObject"] == cluster("a")
    assert event["responseObject"]["items"] == [cluster("a"), 7]
    assert answered(creation([7]), json_response([]), omits_managed_fields=True)["requestObject"] == [7]


def test_a_token_review_is_never_shown() -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": "t0ps3cret"}}
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    request = Sent("POST", path, body=body_of(review), content_type=JSON)
    event = answered(request, json_response(review, status=201))
    assert event["responseStatus"]["code"] == 201
    assert {"requestObject", "responseObject"}.isdisjoint(event)


def test_secrets_are_masked_wherever_they_come() -> None:
    patch = {"spec": {"authInfo": {"providers": [{"config": {"token": "t0ps3cret"}}]}}}
    request = Sent(
        "PATCH",
        f"{path_of('a')}?access_token=t0ps3cret",
        body=body_of(patch),
        content_type=MERGE_PATCH,
        user_agent="agent Bearer t0ps3cret",
    )
    request.id = "Bearer t0ps3cret"
    made = trail(request)
    made.failed(request, errors.bad_request('no kind in \'{"token": "t0ps3cret"}\'').status)
    event = rendered(made)
    assert "t0ps3cret" not in json.dumps(event)
    assert event["requestObject"]["spec"]["authInfo"]["providers"][0]["config"]["token"] == MASK


def test_paths_are_quoted_and_odd_queries_survive() -> None:
    request = Sent("GET", "/odd path/é")
    request.query_string = b"a=\xff&b"
    event = answered(request, text_response("", status=404))
    assert event["requestURI"] == "/odd%20path/%C3%A9?a=\ufffd&b"
    assert "objectRef" not in event


def test_a_failed_authentication_has_no_user() -> None:
    request = Sent("GET", CLUSTERS, user=None)
    made = trail(request, Level.Metadata)
    made.failed(request, errors.unauthorized().status)
    assert rendered(made)["user"] == {}


def test_what_was_sent_is_no_name_unless_it_is_one() -> None:
    odd = {"apiVersion": GROUP_VERSION, "metadata": {"name": 7, "uid": {}}}
    assert answered(creation(odd), json_response({}))["objectRef"].keys() == {"resource", "apiGroup", "apiVersion"}
    assert answered(creation({"metadata": 7}), json_response({}))["objectRef"]["resource"] == "clusters"


def test_bodies_in_protobuf_are_shown_as_json() -> None:
    review = {"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1", "metadata": {}}
    encoded = protobuf_codec.encode(review)
    request = Sent(
        "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=encoded, content_type=PROTOBUF.decode()
    )
    event = answered(request, Response(201, PROTOBUF, (encoded,)))
    assert (event["requestObject"], event["responseObject"]) == (review, review)


def test_a_body_that_is_no_protobuf_is_left_out() -> None:
    assert bodies.decoded(b"k8s", PROTOBUF.decode()) is None


# Source addresses


@pytest.mark.parametrize(
    ("forwarded_for", "real_ip", "peer", "expected"),
    [
        ("", "", "10.0.0.1", ["10.0.0.1"]),
        ("", "", "", []),
        ("1.2.3.4, nonsense, ::1", "9.9.9.9", "10.0.0.1", ["1.2.3.4", "::1", "9.9.9.9", "10.0.0.1"]),
        ("1.2.3.4,9.9.9.9", "1.2.3.4", "9.9.9.9", ["1.2.3.4", "9.9.9.9"]),
        ("", "nonsense", "10.0.0.1", ["10.0.0.1"]),
        ("10.0.0.1, 1.2.3.4", "", "10.0.0.1", ["10.0.0.1", "1.2.3.4", "10.0.0.1"]),
    ],
)
def test_proxies_come_first_and_the_peer_last(forwarded_for: str, real_ip: str, peer: str, expected: list[str]) -> None:
    assert source_addresses(forwarded_for=forwarded_for, real_ip=real_ip, peer=peer) == expected


def test_a_client_cannot_make_the_list_long() -> None:
    found = source_addresses(forwarded_for=",".join(["1.2.3.4"] * 1000), real_ip="", peer="10.0.0.1")
    assert len(found) == 33
    assert found[-1] == "10.0.0.1"
