"""Reviews as kube-apiserver v1.36 answers them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.apiserver.api.clients import Answer
from tests.apiserver.api.in_process import InProcessClient

RECORDED = json.loads((Path(__file__).parent / "recorded.json").read_text())
"""Questions of an administrator, with the answers of kube-apiserver; times stand as ``<time>``."""

TIME = re.compile(r'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"')


def ask(client: InProcessClient, recorded: dict[str, Any]) -> Answer:
    body = recorded["body"]
    return client.request(
        recorded.get("method", "POST"),
        recorded["path"],
        body=body.encode() if isinstance(body, str) else body,
        headers={"Content-Type": recorded.get("type", "application/json"), "User-Agent": "replay/1"},
    )


@pytest.mark.parametrize("recorded", RECORDED, ids=[each["name"] for each in RECORDED])
def test_a_question_is_answered_as_kube_apiserver_does(local: InProcessClient, recorded: dict[str, Any]) -> None:
    answer = ask(local, recorded)
    assert answer.status == recorded["expect"]["status"]
    body = TIME.sub('"<time>"', answer.body.decode())
    assert json.loads(body) == recorded["expect"]["body"]
    sent = [value for name, value in answer.headers if name.lower() == "warning"]
    assert sent == recorded["expect"].get("warnings", [])
