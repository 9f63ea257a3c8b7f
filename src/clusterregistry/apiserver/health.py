"""``/healthz``, ``/livez`` and ``/readyz``: whole, check by check, and with ``?verbose``, as in kube-apiserver."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.endpoints.encoding import page_not_found
from clusterregistry.apiserver.endpoints.request import Request
from clusterregistry.apiserver.http.response import Response, text_response

_log = logging.getLogger(__name__)

Check = Callable[[], str]
"""Returns what is wrong; empty when all is well. Must not block."""


class Remark(NamedTuple):
    """Remarks about a check that has passed."""

    lines: Callable[[], Sequence[str]]
    """Returns the remarks, a line each."""
    counted_as: str
    """What they are, after their number."""


_MOST_REMARKS = 100


def ping() -> str:
    """Always passes."""
    return ""


class Health:
    """The checks behind each endpoint, in the order in which they are shown, and remarks on some that pass."""

    def __init__(
        self, checks: Mapping[str, Mapping[str, Check]], *, remarks: Mapping[str, Remark] | None = None
    ) -> None:
        self._checks, self._remarks = checks, remarks or {}

    @property
    def paths(self) -> list[str]:
        """Every endpoint, and every single check below it."""
        below = [f"/{endpoint}/{name}" for endpoint, checks in self._checks.items() for name in checks]
        return [*(f"/{endpoint}" for endpoint in self._checks), *below]

    def answer(self, request: Request) -> Response | None:
        """Returns None for a path that is no health endpoint."""
        endpoint, _, single = request.path.strip("/").partition("/")
        checks = self._checks.get(endpoint)
        if checks is None:
            return None
        if single:
            return self._one(endpoint, single, checks)
        return self._all(endpoint, checks, request)

    def _one(self, endpoint: str, name: str, checks: Mapping[str, Check]) -> Response:
        check = checks.get(name)
        if check is None:
            return page_not_found()
        wrong = check()
        if wrong:
            return text_response(f"internal server error: {endpoint} check {name} failed: {wrong}\n", status=500)
        remarks = self._remarks[name].lines() if name in self._remarks else ()
        return text_response("\n".join(["ok", *_shortened(remarks)]))

    def _all(self, endpoint: str, checks: Mapping[str, Check], request: Request) -> Response:
        left_out = set(request.query.all("exclude"))
        results = {name: "" if name in left_out else check() for name, check in checks.items()}
        failed = any(results.values())
        for name, wrong in results.items():
            if wrong:
                _log.warning("%s: check %s failed: %s", endpoint, name, wrong)
        if not failed and "verbose" not in request.query:
            return text_response("ok")
        lines = [_line(name, wrong, excluded=name in left_out) + self._counted(name) for name, wrong in results.items()]
        unknown = sorted(left_out - checks.keys())
        if unknown:
            lines.append(
                f"warn: some health checks cannot be excluded: no matches for {','.join(map(quoted, unknown))}"
            )
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return text_response("\n".join(lines) + "\n", status=500 if failed else 200)

    def _counted(self, name: str) -> str:
        """The number of remarks only: anyone may ask for all checks."""
        found = self._remarks.get(name)
        count = len(found.lines()) if found else 0
        return f": {count} {found.counted_as}" if found and count else ""


def _line(name: str, wrong: str, *, excluded: bool) -> str:
    if excluded:
        return f"[+]{name} excluded: ok"
    # Anyone may ask for all checks: the reason is in the log and in the answer of the single check.
    return f"[-]{name} failed: reason withheld" if wrong else f"[+]{name} ok"


def _shortened(remarks: Sequence[str]) -> list[str]:
    more = [f"and {len(remarks) - _MOST_REMARKS} more"] if len(remarks) > _MOST_REMARKS else []
    return [*remarks[:_MOST_REMARKS], *more]
