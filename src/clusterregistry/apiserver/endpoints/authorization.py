"""What a request asks for as a question for authorizers, and questions that come up only on the way."""

from __future__ import annotations

from clusterregistry.apiserver.authz.forbidden import forbidden
from clusterregistry.apiserver.authz.interface import Attributes, decided
from clusterregistry.apiserver.http.request import Request


def attributes_of(request: Request) -> Attributes:
    """What a request wants to do."""
    memo = request.info.memo
    known: Attributes | None = memo.get(attributes_of)
    if known is None or known.user is not request.user:
        # Who asks for something asks for it again, more often than somebody else does.
        known = memo[attributes_of] = _attributes(request)
    return known


def _attributes(request: Request, verb: str = "", *, name: str | None = None) -> Attributes:
    """What a request wants to do, or the same with another verb or name."""
    info = request.info
    # By position: to make an object by keywords costs a dictionary of them, and many requests have one of their own.
    return Attributes(
        request.user,
        verb or info.verb,
        info.is_resource,
        info.group,
        info.version,
        info.resource,
        info.subresource,
        info.name if name is None else name,
        info.namespace,
        info.path,
    )


async def require(request: Request, verb: str, *, name: str | None = None) -> None:
    """What a request asks for turns out to be something else as well, such as to create. Raises 403."""
    attributes = _attributes(request, verb, name=name)
    decision = await decided(request.authorizer, attributes)
    if not decision.allowed:
        raise forbidden(attributes, decision)
