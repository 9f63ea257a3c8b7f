"""What label selectors and field selectors share: how a bad one is refused."""

from __future__ import annotations


class SelectorError(ValueError):
    """A selector that does not parse. ``str()`` of it is what kube-apiserver answers with its 400."""
