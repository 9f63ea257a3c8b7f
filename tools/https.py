"""One HTTPS request on a connection of its own, for checks that look at the status whatever it is."""

import http.client
import json
import ssl
from contextlib import closing
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

TIMEOUT = 30.0


@dataclass(frozen=True)
class Answer:
    status: int
    content: bytes

    @property
    def body(self) -> Any:
        """The decoded JSON, or the text of any other answer."""
        try:
            return json.loads(self.content)
        except ValueError:
            return self.content.decode(errors="replace")


@dataclass(frozen=True)
class Server:
    """A server, and the user whose token the requests have. ``trust`` is a context, or the file of a CA."""

    url: str
    trust: ssl.SSLContext | Path
    token: str = ""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends a request; ``body`` is JSON, and ``x_remote_user`` is a header, and so on. Raises OSError."""
        context = ssl.create_default_context(cafile=self.trust) if isinstance(self.trust, Path) else self.trust
        named = {"content-type": "application/json"} | {name.replace("_", "-"): text for name, text in headers.items()}
        if self.token:
            named["authorization"] = f"Bearer {self.token}"
        host = self.url.removeprefix("https://")
        with closing(http.client.HTTPSConnection(host, timeout=TIMEOUT, context=context)) as connection:
            try:
                connection.request(method, path, None if body is None else json.dumps(body), named)
                answer = connection.getresponse()
                return Answer(answer.status, answer.read())
            except http.client.HTTPException as error:
                raise OSError(f"{method} {self.url}{path}: {error!r}") from error

    def is_ok(self, path: str) -> bool:
        """Whether a GET is answered with 200: a server that has no certificate yet, or does not listen, is not."""
        try:
            return self.call("GET", path).status == HTTPStatus.OK
        except OSError:
            return False
