"""What can be wrong with a simulated member. Faults are switched at run time, one at a time for each member."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """The names are used on the command line and by the control server."""

    NONE = "none"
    # Connections
    REFUSED = "refused"
    """No listener: connections are refused, existing ones end."""
    SILENT = "silent"
    """Connections are accepted, and nothing follows."""
    TLS_SILENT = "tls-silent"
    """TLS works, and no response follows."""
    RESET = "reset"
    """Connections are reset before TLS."""
    PLAIN_HTTP = "plain-http"
    """The port speaks HTTP without TLS."""
    # Certificates
    OTHER_CA = "other-ca"
    EXPIRED_CERTIFICATE = "expired-certificate"
    WRONG_NAME = "wrong-name"
    # Responses
    UNAUTHORIZED = "401"
    FORBIDDEN = "403"
    TOO_MANY_REQUESTS = "429"
    """With Retry-After."""
    INTERNAL_ERROR = "500"
    UNAVAILABLE = "503"
    NOT_READY = "not-ready"
    """``/readyz`` names checks that fail; everything else works."""
    REDIRECT = "redirect"
    SLOW = "slow"
    """Each response takes two seconds."""
    SLOW_BYTES = "slow-bytes"
    """A byte each half second."""
    CUT = "cut"
    """The connection ends in the middle of a body."""
    CLOSE = "close"
    """The connection ends instead of a response."""
    ENDLESS_BODY = "endless-body"
    HUGE_JSON = "huge-json"
    """60 MB of valid JSON, with its length."""
    HUGE_CHUNKED_JSON = "huge-chunked-json"
    """The same without its length."""
    DEEP_JSON = "deep-json"
    """Lists in lists, 100,000 deep."""
    MANY_VALUES = "many-values"
    """A body within the limit of bytes that holds millions of values."""
    NO_JSON = "no-json"
    NO_HTTP = "no-http"
    HUGE_HEADER = "huge-header"
    FLAPPING = "flapping"
    """Every second ``/readyz`` fails."""
    ECHO = "echo"
    """A 403 whose message repeats the credential of the request."""


CERTIFICATE_FAULTS = frozenset({Fault.OTHER_CA, Fault.EXPIRED_CERTIFICATE, Fault.WRONG_NAME})
