"""What a filter is: it takes the next handler and returns one that does something before it, after it, or instead.

A filter that only looks at the request is a plain function that returns the next handler's awaitable: a
coroutine of its own would cost more than the look.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from clusterregistry.handlers.requests import Request
from clusterregistry.handlers.responses import Answer

Handler = Callable[[Request], Awaitable[Answer]]
Filter = Callable[[Handler], Handler]
