"""``Warning`` headers: what a client should know though its request was accepted."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOTAL_LIMIT = 4 * 1024
_ITEM_LIMIT = 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class WarningRecorder:
    """Collects warnings, each once, and bounds what they add to an answer as kube-apiserver does.

    Above 4096 characters in all, each warning is cut to 256 and the ones that do not fit are left out.
    """

    __slots__ = ("_texts",)

    def __init__(self) -> None:
        self._texts: dict[str, None] | None = None

    def add(self, text: str) -> None:
        if text:
            if self._texts is None:
                self._texts = {}
            self._texts[text] = None

    def taking_back(self) -> Callable[[], None]:
        """What takes back all that will be added from now on, whenever it is called."""
        before = self._texts and dict(self._texts)

        def take_back() -> None:
            self._texts = before and dict(before)

        return take_back

    def headers(self) -> list[tuple[bytes, bytes]]:
        if not self._texts:
            return []
        texts = list(self._texts)
        if sum(map(len, texts)) > _TOTAL_LIMIT:
            texts = _cut(texts)
        return [(b"warning", _header(text)) for text in texts]


def _cut(texts: list[str]) -> list[str]:
    kept, written = [], 0
    for text in texts:
        if written >= _TOTAL_LIMIT:
            break
        kept.append(text[:_ITEM_LIMIT])
        written += len(kept[-1])
    return kept


def _header(text: str) -> bytes:
    quoted = _CONTROL.sub(" ", text).replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode()
