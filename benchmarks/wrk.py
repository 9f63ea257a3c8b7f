"""Small GETs through wrk (Debian's package ``wrk``), whose own cost hides nothing of a fast server.

Where there is no wrk the Python client does the same: the server's CPU per request stays comparable, the throughput is
then the client's limit rather than the server's.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from typing import Any

from benchmarks import objects
from benchmarks.driver import Load, LoadError, Sending, forever, measured
from benchmarks.meter import Meter, Record
from benchmarks.targets import NO_FIELDS, Target, header_fields

MISSING = (
    "wrk is not installed (Debian: apt-get install wrk). get, list_100 and list_selector are measured with the Python "
    "client instead, which is slower than the server: their throughput counts for nothing, CPU per request does."
)

_SCRIPT = """
wrk.method = "GET"
%s
done = function(s, l, r)
  io.write(string.format('\\nRESULT {"n":%%d,"us":%%d,"bytes":%%d,"status":%%d,"sock":%%d,'
    .. '"p50":%%f,"p95":%%f,"p99":%%f,"max":%%f}\\n',
    s.requests, s.duration, s.bytes, s.errors.status,
    s.errors.connect + s.errors.read + s.errors.write + s.errors.timeout,
    l:percentile(50), l:percentile(95), l:percentile(99), l.max))
end
"""
_NOT_A_NUMBER = re.compile(r"-?nan")
"""What it says of the latency of nothing."""


def is_there() -> bool:
    return shutil.which("wrk") is not None


def get_repeatedly(
    target: Target, path: str, *, connections: int, seconds: float, fields: Mapping[str, str] = NO_FIELDS
) -> Record:
    """GETs of one path, as many as go."""
    if not is_there():
        request = target.request("GET", path, **fields)
        load = Load(source=forever(lambda _: Sending(request)), connections=connections, seconds=seconds)
        return measured(target, load) | {"client": "python"}
    header = {"Authorization": f"Bearer {target.token}", "Accept": objects.JSON} | header_fields(fields)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(_SCRIPT % "\n".join(f'wrk.headers["{name}"] = "{value}"' for name, value in header.items()))
        script.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s"]
        with Meter(target) as meter:
            ended = subprocess.run(
                [*command, "-s", script.name, target.url + path], capture_output=True, text=True, check=False
            )
    found = re.search(r"RESULT (.*)", ended.stdout)
    if not found:
        raise LoadError(f"wrk: {ended.stdout} {ended.stderr}")
    said = json.loads(_NOT_A_NUMBER.sub("0", found[1]))
    if not said["n"]:
        raise LoadError(f"wrk got no answer in {seconds:g} s")
    return _record(meter, said)


def _record(meter: Meter, said: dict[str, Any]) -> Record:
    seconds = said["us"] / 1e6
    return meter.record(said["n"]) | {
        "n": said["n"],
        "seconds": seconds,
        "rps": said["n"] / seconds,
        "errors": said["status"] + said["sock"],
        "bytes": said["bytes"] / max(1, said["n"]),
        **{f"{name}_ms": said[name] / 1e3 for name in ("p50", "p95", "p99", "max")},
    }
