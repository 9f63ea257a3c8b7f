"""An answer of HTTP/1.1 as it comes in, read just far enough to know where it ends."""


class Answer:
    """Fed with bytes until it is whole. The body is kept when asked for, and when it is an error's."""

    __slots__ = ("_chunked", "_head", "_keep", "_left", "_line", "_need", "body", "size", "status")

    _IN_TRAILER = -2

    def __init__(self, *, keep: bool) -> None:
        self._keep, self._head, self._need, self._chunked = keep, b"", -1, False
        self._left, self._line = -1, b""
        self.body: list[bytes] = []
        self.status = self.size = 0

    @property
    def content(self) -> bytes:
        return b"".join(self.body)

    def feed(self, data: bytes) -> bool:
        """True once the answer is complete."""
        if self.status == 0:
            self._head = data = self._head + data if self._head else data
            end = data.find(b"\r\n\r\n")
            if end < 0:
                return False
            self._read_head(data[:end].lower())
            data = data[end + 4 :]
        if self._chunked:
            return self._read_chunks(data)
        self.size += len(data)
        if self._keeps:
            self.body.append(data)
        return self.size >= self._need

    @property
    def _keeps(self) -> bool:
        return self._keep or self.status >= 400  # noqa: PLR2004 - errors

    def _read_head(self, head: bytes) -> None:
        self.status = int(head[9:12])
        at = head.find(b"\r\ncontent-length:")
        if at >= 0:
            end = head.find(b"\r\n", at + 2)
            self._need = int(head[at + 17 : end if end > 0 else len(head)])
        elif b"transfer-encoding: chunked" in head:
            self._chunked = True
        else:
            self._need = 0

    def _read_chunks(self, data: bytes) -> bool:
        at = 0
        while at < len(data):
            if self._left > 0:
                at += self._read_chunk(data, at)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                return False
            line, self._line, at = (self._line + data[at:end]).strip(), b"", end + 1
            if self._left != self._IN_TRAILER:
                size = int(line.split(b";")[0], 16)
                self._left = size + 2 if size else self._IN_TRAILER
            elif not line:
                return True
        return False

    def _read_chunk(self, data: bytes, at: int) -> int:
        """Takes what is there of a chunk, whose line end counts as part of it."""
        taken = min(self._left, len(data) - at)
        if self._keeps:
            self.body.append(data[at : at + min(taken, max(0, self._left - 2))])
        self._left -= taken
        self.size += taken
        return taken
