"""The examples of docs/guides/credentials.md are valid rules."""

from __future__ import annotations

import re
from pathlib import Path

from clusterregistry.controllers.access.configuration import parse

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "credentials.md"


def test_every_access_yaml_of_the_guide_is_valid() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    examples = [block for block in blocks if "AccessConfiguration" in block]
    resolvers = {rule.resolver for each in examples for rule in parse(each.encode(), Path("/etc/access.yaml"))}
    assert resolvers == {"file", "env", "exec", "secret", "tokenRequest", "inCluster", "none"}
