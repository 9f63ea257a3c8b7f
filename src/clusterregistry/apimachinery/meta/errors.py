"""API errors: exceptions that carry the ``Status`` of the response.

    APIError                      any failed request; ``status`` is the wire object
    └── made by the functions below, one for each reason Kubernetes knows

Raise them anywhere below the filters, which render them in one place. Any other exception is a bug of the server, and
becomes a 500.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError

Status = dict[str, Any]

_MOST_CAUSES = 500
"""The most causes of a 422: a body of three megabytes can have a hundred thousand, each of them reported twice."""

_MOST_CHARACTERS = 256 * 1024
_LONGEST_TEXT = 8 * 1024
"""Characters of all causes of a 422, and of each text in one: the client chooses the names of fields."""

_LONGEST_MESSAGE = 2 * _MOST_CHARACTERS
_LONGEST_NAME = 1024
"""Characters of the message of any error, and of the names in its details."""


class APIError(Exception):
    """A failed request with its Status. ``retry_after`` also becomes a header."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.get("message", ""))
        self.status = status

    @property
    def code(self) -> int:
        return int(self.status["code"])

    @property
    def reason(self) -> str:
        return str(self.status.get("reason", ""))

    @property
    def retry_after(self) -> int | None:
        """Seconds after which to try again, where the Status names them."""
        seconds = self.status.get("details", {}).get("retryAfterSeconds")
        return None if seconds is None else int(seconds)


def failure(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> APIError:
    """An error of any reason; the functions below know the usual ones."""
    status: Status = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message if len(message) <= _LONGEST_MESSAGE else f"{message[:_LONGEST_MESSAGE]}...",
    }
    if reason:
        status["reason"] = reason
    if details is not None:
        status["details"] = {key: _cut(value, _LONGEST_NAME) for key, value in details.items() if value}
    status["code"] = code
    return APIError(status)


def success(details: dict[str, Any]) -> Status:
    """The Status that answers a delete that removed the object."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def qualified(name: str, group: str) -> str:
    """``clusters.example.com``, or the bare name in the core group."""
    return f"{name}.{group}" if group else name


def bad_request(message: str) -> APIError:
    return failure(400, "BadRequest", message)


def unauthorized() -> APIError:
    return failure(401, "Unauthorized", "Unauthorized")


def forbidden(*, group: str, resource: str, name: str, detail: str) -> APIError:
    """403 for a resource; ``detail`` names the user and the denied action."""
    subject = qualified(resource, group)
    shown = f"{subject} {field_errors.shown(name)}" if name else subject
    return failure(
        403, "Forbidden", f"{shown} is forbidden: {detail}", {"name": name, "group": group, "kind": resource}
    )


def forbidden_path(detail: str) -> APIError:
    """403 for a path that is not a resource."""
    return failure(403, "Forbidden", f"forbidden: {detail}", {})


def not_found(*, group: str, resource: str, name: str) -> APIError:
    message = f"{qualified(resource, group)} {field_errors.shown(name)} not found"
    return failure(404, "NotFound", message, {"name": name, "group": group, "kind": resource})


def no_such_resource() -> APIError:
    """404 for an unknown resource of a known group."""
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(*, group: str, resource: str, name: str) -> APIError:
    message = f"{qualified(resource, group)} {field_errors.shown(name)} already exists"
    return failure(409, "AlreadyExists", message, {"name": name, "group": group, "kind": resource})


def conflict(*, group: str, resource: str, name: str, detail: str) -> APIError:
    message = f"Operation cannot be fulfilled on {qualified(resource, group)} {field_errors.shown(name)}: {detail}"
    return failure(409, "Conflict", message, {"name": name, "group": group, "kind": resource})


def storage_read_error(message: str, details: dict[str, Any] | None = None) -> APIError:
    """A stored object that cannot be read. The reason is kube-apiserver's.

    The code is not (500): the server works, a retry does not help, and the client can do something about it. It cannot
    be 404 either, since the name is in use.
    """
    return failure(409, "StorageReadError", message, details)


def invalid(*, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> APIError:
    """422 with the wrong fields as causes, cut if there are very many. ``errors`` must not be empty."""
    reported = _cut_errors(errors)
    message = f"{qualified(kind, group)} {field_errors.shown(name)} is invalid: {field_errors.aggregate(reported)}"
    if len(errors) > len(reported):
        message += f", and {len(errors) - len(reported)} more"
    causes = [error.cause() for error in reported]
    return failure(422, "Invalid", message, {"name": name, "group": group, "kind": kind, "causes": causes})


def _cut_errors(errors: Sequence[FieldError]) -> list[FieldError]:
    """The first of the errors, up to the limits of a response."""
    reported: list[FieldError] = []
    room = _MOST_CHARACTERS
    for error in errors[:_MOST_CAUSES]:
        room -= len(error.field) + len(error.message)
        if room < 0:
            cut = FieldError(_cut(error.field, _LONGEST_TEXT), error.reason, _cut(error.message, _LONGEST_TEXT))
            return [*reported, cut]
        reported.append(error)
    return reported


def _cut(value: Any, limit: int) -> Any:
    return f"{value[:limit]}..." if type(value) is str and len(value) > limit else value


def method_not_supported(*, group: str, resource: str, action: str) -> APIError:
    """405; ``action`` is the verb, empty for an HTTP method that has none."""
    if not action:
        return method_not_allowed()
    message = f"{action} is not supported on resources of kind {field_errors.shown(qualified(resource, group))}"
    return failure(405, "MethodNotAllowed", message, {"group": group, "kind": resource})


def method_not_allowed() -> APIError:
    """405 for a path that is not a resource."""
    return failure(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def unprocessable() -> APIError:
    """422 for a patch that parses and cannot be applied: kube-apiserver gives neither details nor cause."""
    return failure(422, "Invalid", "the server rejected our request due to an error in our request", {})


def not_acceptable(accepted: Sequence[str]) -> APIError:
    return failure(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(accepted)}")


def unsupported_media_type(accepted: Sequence[str]) -> APIError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return failure(415, "UnsupportedMediaType", message)


def request_entity_too_large(message: str) -> APIError:
    return failure(413, "RequestEntityTooLarge", f"Request entity too large: {message}")


def gone(message: str) -> APIError:
    """410: the resource version is compacted."""
    return failure(410, "Expired", message)


def resource_version_too_large(requested: int, current: int, *, retry_after: int = 1) -> APIError:
    """504: the client has seen a revision that this server has not."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    return failure(504, "Timeout", message, {"causes": [cause], "retryAfterSeconds": retry_after})


def timeout(message: str, *, retry_after: int = 0) -> APIError:
    return failure(504, "Timeout", f"Timeout: {message}", {"retryAfterSeconds": retry_after})


def service_unavailable(message: str, *, retry_after: int = 1) -> APIError:
    return failure(503, "ServiceUnavailable", message, {"retryAfterSeconds": retry_after})


def too_many_requests() -> APIError:
    message = "Too many requests, please try again later."
    return failure(429, "TooManyRequests", message, {"retryAfterSeconds": 1})


def internal(message: str) -> APIError:
    """500 for a bug of the server: the error for every unexpected exception."""
    cause = {"message": message}
    return failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": [cause]})
