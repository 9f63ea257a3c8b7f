"""Simulated member clusters as a program; see the package. Ends with Ctrl-C or SIGTERM.

Faults are switched by a small HTTP server on loopback:

    curl http://127.0.0.1:PORT/members                                the members and their faults
    curl -X PUT http://127.0.0.1:PORT/members/sim-00003/fault/503     one member; "none" ends a fault
    curl -X PUT http://127.0.0.1:PORT/faults/silent/50                50 members that have none
    curl -X PUT http://127.0.0.1:PORT/members/sim-00003/nodes/40/2    40 nodes, 2 of them not ready
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from tools.ports import free_port
from tools.simulator import Fault, Simulator
from tools.simulator.control import NOTE, serve_control, set_faults


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.simulator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--members", type=int, default=12, help="how many members (default 12)")
    parser.add_argument("--port", type=int, default=0, help="of all members (default: a free one)")
    parser.add_argument("--control-port", type=int, default=0, help="of the control server (default: a free one)")
    parser.add_argument(
        "--write-registry", type=Path, metavar="DIRECTORY", help="writes clusters.yaml, access.yaml and tokens there"
    )
    parser.add_argument(
        "--fault", action="append", default=[], metavar="FAULT=COUNT", help=f"from the start; {', '.join(Fault)}"
    )
    return parser.parse_args(arguments)


async def run(options: argparse.Namespace) -> None:
    """Serves until a signal comes."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    simulator = Simulator(options.members, port=options.port)
    if options.write_registry:
        simulator.write_registry(options.write_registry)
    async with simulator, serve_control(simulator, port=options.control_port or free_port()) as control:
        for fault in options.fault:
            name, _, count = fault.partition("=")
            set_faults(simulator, Fault(name), int(count or 1))
        _print_start(simulator, options, control)
        gc.freeze()
        await stopped.wait()


def _print_start(simulator: Simulator, options: argparse.Namespace, control: str) -> None:
    first, last = simulator.members[0], simulator.members[-1]
    print(NOTE)
    print(f"{len(simulator.members)} members: {first.name} {first.url} to {last.name} {last.url}")
    print(f"Faults: curl -X PUT {control}/members/{first.name}/fault/503   (list: curl {control}/members)")
    if options.write_registry:
        print(f"Registry: kubectl apply -f {options.write_registry}/clusters.yaml")
        print(f"Controller: --access-config {options.write_registry}/access.yaml")
    sys.stdout.flush()


def main() -> None:
    options = parse(sys.argv[1:])
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(options))


if __name__ == "__main__":
    main()
