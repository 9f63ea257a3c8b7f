"""A pod as a local process: its own command, restarted when it ends, with its volumes as directories.

Each pod has an address of its own on loopback, in the place of the one to listen on. What is mounted below /etc and
/var/run, and the names of services, are where Kubernetes puts them, in a mount namespace of the process; paths of other
volumes are rewritten, and all of them where mount namespaces are not permitted. Nothing else of the command is changed.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import clusterregistry
from tests.crinit.networks import local
from tools import exchanges
from tools.processes import Process

_SOURCES = Path(clusterregistry.__file__).parent.parent
_FIRST_BACK_OFF = 1.0
_MOUNTED = ("/etc/", "/var/run/")
"""Below which volumes can be mounted: what else is in /var/run is of no use to a pod, and /etc shines through."""

_MOUNT = """
scratch=$1 hosts=$2; shift 2
mount -t tmpfs none "$(readlink -f /var/run)"
mount -t tmpfs none "$scratch"
mkdir "$scratch/upper" "$scratch/work"
mount -t overlay overlay -o "lowerdir=/etc,upperdir=$scratch/upper,workdir=$scratch/work" /etc
printf '%s\\n' "$hosts" >> /etc/hosts
while [ "$1" != -- ]; do mkdir -p "$2"; mount --bind "$1" "$2"; shift 2; done
shift
exec "$@"
"""


@functools.cache
def mounting() -> tuple[str, ...]:
    """How to start something with mounts of its own; nothing where that is not permitted.

    Behind it come a directory to use, lines of /etc/hosts, pairs of a directory and where to mount it, and ``--``.
    """
    if not shutil.which("unshare"):
        return ()
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    begin = ("unshare", *user, "--mount", "sh", "-euc", _MOUNT, "sh")
    with tempfile.TemporaryDirectory() as scratch:
        trial = [*begin, scratch, "", "/etc", "/etc/tried/it", "--", "test", "-e", "/etc/tried/it/hosts"]
        tried = subprocess.run(trial, capture_output=True, check=False)
    return begin if tried.returncode == 0 else ()


class Pod:
    """One pod. ``name``, ``uid`` and ``spec`` are those of the object that kube-apiserver has of it."""

    def __init__(self, made: dict[str, Any], template: dict[str, Any], *, address: str, directory: Path) -> None:
        self.name, self.uid, self.spec = made["metadata"]["name"], made["metadata"]["uid"], made["spec"]
        self.template, self.address, self.directory = template, address, directory
        self._container = self.spec["containers"][0]
        self._process: Process | None = None
        self.environ: dict[str, str] = {}
        self.command: list[str] = []
        self.restarts, self.ended_with, self._start_at = 0, 0, 0.0
        self.reported: dict[str, Any] = {}

    def ports(self) -> dict[str, int]:
        return {each["name"]: each["containerPort"] for each in self._container["ports"]}

    def log(self, *, previous: bool = False) -> Path:
        return self.directory / ("log.previous" if previous else "log")

    def start(self, places: dict[str, str], environ: dict[str, str], *, hosts: str = "") -> None:
        """``places`` are where the volumes are, by where the container expects them; ``hosts`` goes into /etc/hosts."""
        program, *words = self._container["command"]
        assert program == "clusterregistry"
        mounted = [path for path in places if path.startswith(_MOUNTED)] if mounting() else []
        rewritten = {path: place for path, place in places.items() if path not in mounted}
        arguments = [self._rewritten(argument, rewritten) for argument in self._container["args"]]
        self.command = [*self._mounts({path: places[path] for path in mounted}, hosts)]
        self.command += [sys.executable, "-m", program, *words, *arguments]
        self.environ = {**environ, "PYTHONPATH": str(_SOURCES)}
        self._run()

    def _mounts(self, places: dict[str, str], hosts: str) -> list[str]:
        if not mounting():
            return []
        scratch = self.directory / "..scratch"
        scratch.mkdir(exist_ok=True)
        pairs = [part for path, place in places.items() for part in (place, path)]
        return [*mounting(), str(scratch), hosts, *pairs, "--"]

    def _run(self) -> None:
        self._process = Process(self.command, log=self.log(), environ=self.environ)
        self._process.start()

    def _rewritten(self, argument: str, places: dict[str, str]) -> str:
        name, equals, value = argument.partition("=")
        if argument == "--bind-address=0.0.0.0":
            return f"{name}={local(self.address)}"
        for path, place in places.items():
            if value == path or value.startswith(path + "/"):
                return f"{name}={place}{value.removeprefix(path)}"
        return name + equals + value

    def look(self) -> str:
        """Starts the container again when it has ended, after a while. Answers what happened, if anything did."""
        if self._process is None:
            if time.monotonic() < self._start_at:
                return ""
            self._run()
            return "Started"
        status = self._process.exit_status()
        if status is None:
            return ""
        self.ended_with, self._process = status, None
        self.log().rename(self.log(previous=True))
        self.log().touch()
        self._start_at = time.monotonic() + _FIRST_BACK_OFF * 2**self.restarts
        self.restarts += 1
        return "BackOff"

    def status(self) -> dict[str, Any]:
        """What a kubelet says of the pod."""
        ready = self.is_ready()
        state: dict[str, Any] = {"running": {}}
        if self._process is None:
            message = f"back-off restarting failed container={self._container['name']} pod={self.name}"
            state = {"waiting": {"reason": "CrashLoopBackOff", "message": message}}
        described = {"name": self._container["name"], "image": self._container["image"], "imageID": ""}
        container = {**described, "ready": ready, "restartCount": self.restarts, "state": state}
        if self.restarts:
            container["lastState"] = {"terminated": {"exitCode": self.ended_with, "reason": "Error"}}
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        return {
            "phase": "Running",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": conditions,
            "containerStatuses": [container],
        }

    def is_reported_ready(self) -> bool:
        """Whether kube-apiserver knows that the pod is ready."""
        return any(each["status"] == "True" for each in self.reported.get("conditions", []))

    def is_ready(self) -> bool:
        """What the readiness probe says, if there is one. Like the kubelet, it does not check certificates."""
        if "readinessProbe" not in self._container:
            return self._process is not None and not self._process.has_ended
        probe = self._container["readinessProbe"]["httpGet"]
        assert probe["scheme"] == "HTTPS"
        url = f"https://{local(self.address)}:{self.ports()[probe['port']]}"
        return exchanges.is_ok(exchanges.access(url), probe["path"])

    def stop(self) -> None:
        if self._process is not None:
            self._process.end()
