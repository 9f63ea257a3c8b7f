"""What a filter is: it takes the next handler and returns one that does something before it, after it, or instead.

A handler that knows its whole answer gives it at once. Only one that has to wait for something answers with an
awaitable, and so do the filters around it: what waits for nothing needs neither coroutines nor a task.
"""

from __future__ import annotations

from collections.abc import Callable

from clusterregistry.apiserver.http.request import Request
from clusterregistry.apiserver.http.response import Answer, Reply, Response

Handler = Callable[[Request], Reply]
Filter = Callable[[Handler], Handler]


async def answered(reply: Reply) -> Answer:
    """The answer, whether it has to be waited for or not."""
    return reply if isinstance(reply, Response) else await reply
