"""Paths that one part of a server could read differently from another: who may not see, never sees."""

from __future__ import annotations

import pytest

from tests.apiserver.api.clients import ADMIN_TOKEN
from tests.system.attacks.raw import NOBODY, Raw

GROUP = b"/apis/clusterregistry.k8s.io/v1alpha1"
HIDDEN = (GROUP + b"/clusters", GROUP + b"/clusters/the-hidden-cluster", GROUP + b"/watch/clusters", b"/metrics")
"""What a user without a role may not read."""

BEFORE = (
    b"",
    b"/",
    b"//",
    b"/.",
    b"/%2e",
    b"/%2F",
    b"/version/..",
    b"/version/../",
    b"/version/%2e%2e",
    b"/version/%2E%2E/",
    b"/version/..%2f",
    b"/version/%2e%2e%2f",
    b"/version%2f..",
    b"/version/..;",
    b"/version/..;/",
    b"/version;",
    b"/version\\..",
    b"/version%5c..",
    b"/healthz/..",
    b"/livez/x/../..",
    b"/apis/x/../..",
    b"/api/..",
    b"/apis/%2e%2e",
    b"/openapi/v2/../..",
    b"/version%00",
    b"/version%00/..",
    b"/%c0%ae%c0%ae",
    b"/version/%c0%ae%c0%ae",
    b"/%e0%80%ae%e0%80%ae",
    b"/version/%252e%252e",
    b"/version?",
    b"/version%3f",
    b"/version%23",
    b"https://registry",
    b"http://registry/version/..",
    b"https://registry/version/../",
    b"https://user@registry",
)

AFTER = (
    b"/",
    b"//",
    b"/.",
    b"/..",
    b"/%2e%2e",
    b"%2f",
    b";",
    b";x=version",
    b"%3bversion",
    b"%00",
    b"%00/version",
    b"/../../../../../version",
    b"/%2e%2e/%2e%2e/%2e%2e/%2e%2e/version",
    b"\\",
    b"?/version",
    b"%3f/version",
    b"?fieldSelector=metadata.name=x",
    b"?watch=1&timeoutSeconds=1",
    b"?watch=%00",
    b"%20",
    b"%",
    b"%zz",
    b"%c0%af",
)


def tricks() -> list[bytes]:
    before = [prefix + path for path in HIDDEN for prefix in BEFORE]
    after = [path + suffix for path in HIDDEN for suffix in AFTER]
    inside = [
        b"/apis//clusterregistry.k8s.io/v1alpha1/clusters",
        b"/apis/clusterregistry.k8s.io//v1alpha1/clusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1//clusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1/clusters//the-hidden-cluster",
        b"/apis/clusterregistry.k8s.io/v1alpha1/./clusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1/x/../clusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1%2fclusters",
        b"/apis%2fclusterregistry.k8s.io%2fv1alpha1%2fclusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1/%63lusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1/CLUSTERS",
        b"/apis/clusterregistry.k8s.io/v1alpha1/watch/clusters/the-hidden-cluster?timeoutSeconds=1",
        b"/apis/clusterregistry.k8s.io/v1alpha1/namespaces/x/clusters",
        b"/api/clusterregistry.k8s.io/v1alpha1/clusters",
        b"/api/v1/../../apis/clusterregistry.k8s.io/v1alpha1/clusters",
        b"/apis/clusterregistry.k8s.io/v1alpha1/clusters/the-hidden-cluster/status",
        b"/apis/clusterregistry.k8s.io/v1alpha1/clusters/the-hidden-cluster/../the-hidden-cluster",
        b"/m%65trics",
        b"/metrics/./",
    ]
    return before + after + inside


@pytest.mark.parametrize("token", [NOBODY, ""], ids=["a user without a role", "nobody at all"])
def test_no_spelling_of_a_path_shows_what_is_hidden(raw: Raw, token: str) -> None:
    told = {}
    for target in tricks():
        reply = raw.ask(target, token=token)
        shown = reply.shows_secret and b"forbidden" not in reply.received
        if shown or b"apiserver_request_total" in reply.received or not reply.statuses or reply.statuses[0] >= 500:
            told[target] = reply.received[:300]
    assert not told


@pytest.mark.parametrize("method", [b"POST", b"PUT", b"PATCH", b"DELETE", b"HEAD", b"OPTIONS", b"TRACE", b"get", b"X"])
def test_no_method_changes_what_is_hidden(raw: Raw, method: bytes) -> None:
    for target in (*HIDDEN, b"/version/.." + HIDDEN[1], HIDDEN[1] + b"/../../../../../version"):
        reply = raw.ask(target, method=method, headers=[b"X-HTTP-Method-Override: GET"], body=b"{}")
        assert reply.statuses
        assert reply.statuses[0] in {400, 403, 404, 405}, (target, reply.received)
    assert raw.ask(HIDDEN[1], token=ADMIN_TOKEN).status == 200


@pytest.mark.parametrize(
    "header",
    [
        b"X-Original-URL: /version",
        b"X-Rewrite-URL: /version",
        b"X-Forwarded-Prefix: /version",
        b"X-Forwarded-Uri: /version",
        b"X-Remote-User: admin",
        b"X-Remote-Group: system:masters",
        b"X-Forwarded-User: admin",
        b"X-Forwarded-For: 127.0.0.1",
        b"Forwarded: for=127.0.0.1",
        b"Impersonate-User: admin",
        b"impersonate-group: system:masters",
        b"Impersonate-Uid: uid-admin",
    ],
)
def test_no_header_changes_the_user(raw: Raw, header: bytes) -> None:
    reply = raw.ask(HIDDEN[0], headers=[header, header])
    assert reply.status in {400, 403, 501}
    assert not reply.shows_secret


def test_an_odd_path_of_an_administrator_reaches_only_what_exists(raw: Raw) -> None:
    """Dots are no way up: a proxy in front of us that leaves them alone can rely on it."""
    for target in (b"/version/.." + HIDDEN[0], b"/apis/x/../.." + HIDDEN[0], b"/version/%2e%2e" + HIDDEN[0]):
        reply = raw.ask(target, token=ADMIN_TOKEN)
        assert reply.status == 404, target
        assert not reply.shows_secret
