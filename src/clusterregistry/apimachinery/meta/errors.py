"""API errors: exceptions that carry the ``Status`` that a client is answered with.

    APIError                      any failed request; ``status`` is the wire object
    └── made by the functions below, one for each reason Kubernetes knows

Raise them anywhere below the handlers; ``serving`` renders them in one place. What is not an
``APIError`` is a bug of ours and becomes a 500.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clusterregistry.apimachinery.meta import field_errors
from clusterregistry.apimachinery.meta.field_errors import FieldError

Status = dict[str, Any]

_MOST_CAUSES = 500
"""Wrong fields that a 422 tells: a body of three megabytes can have a hundred thousand, each told twice."""

_MOST_TOLD = 256 * 1024
_LONGEST_TEXT = 8 * 1024
"""Characters of all causes of a 422, and of each text in one; the fields that they name are the client's to choose."""

_LONGEST_MESSAGE = 2 * _MOST_TOLD
_LONGEST_NAME = 1024
"""Characters of the message of any error, and of the names in its details."""


class APIError(Exception):
    """A failed request and the Status that says so. ``retry_after`` also becomes a header."""

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
    """403 for a resource; ``detail`` says who may not do what."""
    subject = qualified(resource, group)
    shown = f"{subject} {field_errors.shown(name)}" if name else subject
    return failure(
        403, "Forbidden", f"{shown} is forbidden: {detail}", {"name": name, "group": group, "kind": resource}
    )


def forbidden_path(detail: str) -> APIError:
    """403 for a path that is no resource."""
    return failure(403, "Forbidden", f"forbidden: {detail}", {})


def not_found(*, group: str, resource: str, name: str) -> APIError:
    message = f"{qualified(resource, group)} {field_errors.shown(name)} not found"
    return failure(404, "NotFound", message, {"name": name, "group": group, "kind": resource})


def no_such_resource() -> APIError:
    """404 for a path below a group that is served, of a resource that is not."""
    return failure(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(*, group: str, resource: str, name: str) -> APIError:
    message = f"{qualified(resource, group)} {field_errors.shown(name)} already exists"
    return failure(409, "AlreadyExists", message, {"name": name, "group": group, "kind": resource})


def conflict(*, group: str, resource: str, name: str, detail: str) -> APIError:
    message = f"Operation cannot be fulfilled on {qualified(resource, group)} {field_errors.shown(name)}: {detail}"
    return failure(409, "Conflict", message, {"name": name, "group": group, "kind": resource})


def storage_read_error(message: str, details: dict[str, Any] | None = None) -> APIError:
    """An object that is stored and cannot be read. The reason is kube-apiserver's.

    The code is not (500): the server is well, the answer would be the same next time, and who asks can do something
    about it. It cannot be 404 either, for the name is taken.
    """
    return failure(409, "StorageReadError", message, details)


def invalid(*, group: str, kind: str, name: str, errors: Sequence[FieldError]) -> APIError:
    """422 with the wrong fields as causes, each of them unless they are very many. ``errors`` must not be empty."""
    told = _told(errors)
    message = f"{qualified(kind, group)} {field_errors.shown(name)} is invalid: {field_errors.aggregate(told)}"
    if len(errors) > len(told):
        message += f", and {len(errors) - len(told)} more"
    causes = [error.cause() for error in told]
    return failure(422, "Invalid", message, {"name": name, "group": group, "kind": kind, "causes": causes})


def _told(errors: Sequence[FieldError]) -> list[FieldError]:
    """The first of the errors, as many of them as an answer has room for."""
    told: list[FieldError] = []
    room = _MOST_TOLD
    for error in errors[:_MOST_CAUSES]:
        room -= len(error.field) + len(error.message)
        if room < 0:
            cut = FieldError(_cut(error.field, _LONGEST_TEXT), error.reason, _cut(error.message, _LONGEST_TEXT))
            return [*told, cut]
        told.append(error)
    return told


def _cut(value: Any, limit: int) -> Any:
    return f"{value[:limit]}..." if type(value) is str and len(value) > limit else value


def method_not_supported(*, group: str, resource: str, action: str) -> APIError:
    """405; ``action`` is the verb, empty for an HTTP method that has none."""
    if not action:
        return method_not_allowed()
    message = f"{action} is not supported on resources of kind {field_errors.shown(qualified(resource, group))}"
    return failure(405, "MethodNotAllowed", message, {"group": group, "kind": resource})


def method_not_allowed() -> APIError:
    """405 for what is no resource."""
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
    """500: ours is the mistake. ``serving`` makes one of every exception that nobody expected."""
    cause = {"message": message}
    return failure(500, "InternalError", f"Internal error occurred: {message}", {"causes": [cause]})
