"""Switches the faults of simulated members over HTTP, for benchmarks and demonstrations in other processes."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

from aiohttp import web

from tools.simulator.faults import Fault
from tools.simulator.simulator import Simulator

NOTE = "These are SIMULATED member clusters: nothing of what they report is real."


class Control:
    """The handlers. Wrong names and numbers are answered with 400."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator

    def application(self) -> web.Application:
        application = web.Application()
        application.add_routes(
            [
                web.get("/members", self.list_members),
                web.put("/members/{name}/fault/{fault}", self.set_fault),
                web.put("/members/{name}/nodes/{count}/{not_ready}", self.set_nodes),
                web.put("/faults/{fault}/{count}", self.set_faults),
            ]
        )
        return application

    async def list_members(self, _: web.Request) -> web.Response:
        rows = [
            {"name": each.name, "url": each.url, "fault": each.fault, "requests": each.request_count}
            for each in self._simulator.members
        ]
        return web.json_response({"note": NOTE, "members": rows})

    async def set_fault(self, request: web.Request) -> web.Response:
        with _checked():
            member, fault = self._simulator.member(request.match_info["name"]), Fault(request.match_info["fault"])
        member.fault = fault
        return web.json_response({"name": member.name, "fault": fault})

    async def set_faults(self, request: web.Request) -> web.Response:
        with _checked():
            names = set_faults(self._simulator, Fault(request.match_info["fault"]), int(request.match_info["count"]))
        return web.json_response({"fault": request.match_info["fault"], "members": names})

    async def set_nodes(self, request: web.Request) -> web.Response:
        with _checked():
            member = self._simulator.member(request.match_info["name"])
            count, not_ready = int(request.match_info["count"]), int(request.match_info["not_ready"])
        member.contents.nodes, member.contents.not_ready = count, not_ready
        return web.json_response({"name": member.name, "nodes": count, "notReady": not_ready})


def set_faults(simulator: Simulator, fault: Fault, count: int) -> list[str]:
    """Gives a fault to members that have none, evenly spread over all of them; returns their names."""
    well = [each for each in simulator.members if each.fault is Fault.NONE]
    chosen = well[:: max(len(well) // count, 1)][:count] if count > 0 else []
    for member in chosen:
        member.fault = fault
    return [each.name for each in chosen]


@contextlib.contextmanager
def _checked() -> Iterator[None]:
    try:
        yield
    except KeyError as error:
        raise web.HTTPBadRequest(text=f"there is no member {error}\n") from None
    except ValueError as error:
        raise web.HTTPBadRequest(text=f"{error}; faults: {', '.join(Fault)}\n") from None


@contextlib.asynccontextmanager
async def serve_control(simulator: Simulator, *, port: int) -> AsyncIterator[str]:
    """Serves on loopback, and gives the URL."""
    runner = web.AppRunner(Control(simulator).application(), access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
