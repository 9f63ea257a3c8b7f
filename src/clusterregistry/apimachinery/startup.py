"""What keeps a server from starting, the message says what is wrong, the remedy what to do."""

from __future__ import annotations


class StartupProblem(Exception):  # noqa: N818 - what it is to an operator
    """Something that an operator has to correct. Parts of the server raise it while they are put together."""

    def __init__(self, message: str, *, remedy: str) -> None:
        super().__init__(message)
        self.remedy = remedy
