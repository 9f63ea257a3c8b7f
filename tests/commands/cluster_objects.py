"""Clusters of v1beta1 with texts of all kinds, as a registry may have them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40) | st.sampled_from(
    ("no", "1.0", "null", "~", "---", "a: b", "- a", "# no comment", "a\n---\nb", "\ufeff", "0x1f", "1e3", "'", '"', "")
)
_KEYS = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
_LABELS = st.dictionaries(_KEYS, st.from_regex(r"([a-z0-9]([a-z0-9_.-]{0,10}[a-z0-9])?)?", fullmatch=True), max_size=3)


@st.composite
def clusters(draw: st.DrawFn, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    if draw(st.booleans()):
        spec["cloudProvider"] = {"name": draw(_TEXTS)}
    if draw(st.booleans()):
        providers = st.fixed_dictionaries(
            {"name": _TEXTS, "type": _TEXTS, "config": st.dictionaries(_KEYS, _TEXTS, min_size=1, max_size=3)}
        )
        spec["authInfo"] = {"providers": draw(st.lists(providers, min_size=1, max_size=3))}
    if draw(st.booleans()):
        address = {"clientCIDR": "10.0.0.0/8", "serverAddress": "https://x.example.com"}
        spec["kubernetesApiEndpoints"] = {"serverEndpoints": [address] * draw(st.integers(1, 2)), "caBundle": "AAAA"}
    if draw(st.booleans()):
        spec["location"] = {"region": draw(st.sampled_from(("north", "1", "on"))), "latitude": "59.9"}
    return {
        "apiVersion": "clusterregistry.k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {
            "name": name,
            "labels": draw(_LABELS),
            "annotations": draw(st.dictionaries(_KEYS, _TEXTS, max_size=3)),
        },
        "spec": spec,
    }


@st.composite
def fleets(draw: st.DrawFn) -> list[dict[str, Any]]:
    return [draw(clusters(f"c-{number}")) for number in range(draw(st.integers(0, 5)))]
