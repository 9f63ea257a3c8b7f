"""What authentication and authorization cost together, in microseconds of CPU for a request that was seen before.

    make bench-access
    make bench-access ARGS=--profile   # where the time goes

The filters from authentication to authorization are measured with a handler behind them that does nothing: neither HTTP
nor storage. The policy has a thousand bindings of a hundred roles. The figure is the best of several rounds, for
anything else that runs on the machine only adds to it. Exit status 1 when the goal is missed.
"""

from __future__ import annotations

import argparse
import cProfile
import csv
import pstats
import ssl
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from clusterregistry.apimachinery import certificates
from clusterregistry.apiserver.authn import union
from clusterregistry.apiserver.authn.certificates import Authorities
from clusterregistry.apiserver.authn.token_file import TokenFile
from clusterregistry.apiserver.authz import modes
from clusterregistry.apiserver.authz.rbac.bindings import Binding, Subject
from clusterregistry.apiserver.authz.rbac.policy import Policy
from clusterregistry.apiserver.authz.rbac.rules import Rule
from clusterregistry.apiserver.endpoints import request_info
from clusterregistry.apiserver.endpoints.request import Handler, Request
from clusterregistry.apiserver.fair_queue import FairQueue
from clusterregistry.apiserver.filters import authentication, authorization, impersonation, in_flight
from clusterregistry.apiserver.filters.metrics import RequestMetrics
from clusterregistry.apiserver.http.response import Response

GOAL = 25.0
CALLS = 2000
ROUNDS = 9
GROUP = "clusterregistry.k8s.io"
CLUSTERS = f"/apis/{GROUP}/v1alpha1/clusters"


class Case(NamedTuple):
    name: str
    method: str
    path: str
    token: str
    query: bytes = b""


CASES = [
    Case("administrator, get", "GET", f"{CLUSTERS}/prod-1", "admin"),
    Case("a role allows all clusters, get", "GET", f"{CLUSTERS}/prod-1", "jane"),
    Case("a role allows all clusters, list", "GET", CLUSTERS, "jane"),
    Case("a role allows all clusters, patch", "PATCH", f"{CLUSTERS}/prod-1", "jane"),
    Case("a role allows some names, get", "GET", f"{CLUSTERS}/prod-1", "joe"),
    Case("a role allows some names, filtered list", "GET", CLUSTERS, "joe"),
    Case("a role allows all clusters, watch", "GET", CLUSTERS, "jane", b"watch=true"),
    Case("discovery", "GET", "/apis", "joe"),
    Case("by a certificate, get", "GET", f"{CLUSTERS}/prod-1", ""),
]


class Asked(Request):
    """A request without a body."""

    async def read_body(self) -> tuple[bytes, bool]:
        return b"", False

    async def disconnected(self) -> None:
        """At once."""


def policy() -> Policy:
    made = Policy()
    for number in range(100):
        rule = Rule(verbs=("get", "list"), api_groups=(GROUP,), resources=("clusters",), resource_names=(f"c{number}",))
        made.set_role(f"role-{number}", [rule], revision=1)
    for number in range(1000):
        bind(made, f"binding-{number}", f"role-{number % 100}", f"user-{number}")
    everything = Rule(verbs=("*",), api_groups=(GROUP,), resources=("clusters",))
    some = Rule(verbs=("get",), api_groups=(GROUP,), resources=("clusters",), resource_names=("prod-1", "prod-2"))
    made.set_role("all", [everything], revision=1)
    made.set_role("some", [some, Rule(verbs=("get",), non_resource_urls=("/apis", "/apis/*"))], revision=1)
    bind(made, "jane", "all", "jane")
    bind(made, "joe", "some", "joe")
    return made


def bind(made: Policy, name: str, role: str, user: str) -> None:
    subject = Subject(kind="User", name=user)
    made.set_binding(name, Binding(role_kind="ClusterRole", role=role, subjects=(subject,)), revision=1)


def chain(directory: Path, clients: Authorities) -> Handler:
    tokens = directory / "tokens.csv"
    with tokens.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["admin", "admin", "1", "system:masters"], ["jane", "jane", "2"], ["joe", "joe", "3"]]
        )
    authorizer = modes.in_order([modes.RBAC], policy())
    authenticator = union.in_order(clients=clients, tokens=[TokenFile(tokens)], anonymous=True)

    def innermost(_: Request) -> Response:
        return Response(200, b"", ())

    handler: Handler = innermost
    handler = authorization.filter_for(authorizer)(handler)
    handler = in_flight.filter_for(reading=FairQueue(400), writing=FairQueue(200), metrics=RequestMetrics({}))(handler)
    handler = impersonation.filter_for(authorizer)(handler)
    return authentication.filter_for(authenticator)(handler)


def certificate(user: str) -> tuple[str, bytes]:
    """An authority as PEM, and a certificate of its own for a user as DER."""
    now = time.time()
    authority = certificates.new_authority(certificates.new_key(), now=now)
    pem = certificates.client_certificate(authority, certificates.new_key(), user=user, group="", now=now).decode()
    return certificates.certificate_pem(authority.certificate).decode(), ssl.PEM_cert_to_DER_cert(pem)


def requests(case: Case, der: bytes) -> list[Request]:
    """As many as are measured: what a filter notes on a request must not help the next one."""
    headers = {"authorization": f"Bearer {case.token}"} if case.token else {}
    made: list[Request] = []
    for _ in range(CALLS):
        request = Asked(
            method=case.method,
            path=case.path,
            query_string=case.query,
            headers=dict(headers),
            client_certificates=() if case.token else (der,),
        )
        request.info = request_info.parse(case.method, case.path, case.query)
        made.append(request)
    return made


def answered(handler: Handler, request: Request) -> None:
    """Runs a request to its end. None of them waits for anything."""
    reply = handler(request)
    assert isinstance(reply, Response), "it waits"


def cost(handler: Handler, case: Case, der: bytes) -> float:
    """Microseconds of CPU for one request."""
    best = float("inf")
    for _ in range(ROUNDS):
        made = requests(case, der)
        began = time.process_time()
        for request in made:
            answered(handler, request)
        best = min(best, time.process_time() - began)
    return best / CALLS * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    profile = parser.parse_args().profile
    authority, der = certificate("jane")
    with tempfile.TemporaryDirectory() as directory:
        handler = chain(Path(directory), Authorities(authority))
    profiler = cProfile.Profile()
    missed = 0
    for case in CASES:
        if profile:
            profiler.enable()
        found = cost(handler, case, der)
        profiler.disable()
        missed += found > GOAL
        print(f"{found:6.1f} us  {'over the goal' if found > GOAL else ''}{case.name}")
    print(f"goal: {GOAL:.0f} us for authentication and authorization together, with impersonation and limits between")
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(20)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
