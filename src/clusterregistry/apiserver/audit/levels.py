"""How much is recorded of a request, and at which moments."""

from __future__ import annotations

import enum
from typing import Final, Literal, get_args


class Level(enum.IntEnum):
    """Each level records what the ones before it do, and more. The names are those on the wire."""

    None_ = 0
    Metadata = 1
    Request = 2
    RequestResponse = 3

    @property
    def shown(self) -> str:
        return self.name.rstrip("_")


LEVELS: Final = {level.shown: level for level in Level}

Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]
REQUEST_RECEIVED: Final = "RequestReceived"
RESPONSE_STARTED: Final = "ResponseStarted"
RESPONSE_COMPLETE: Final = "ResponseComplete"
PANIC: Final = "Panic"
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)
