"""Replaces the user by the one that the impersonation headers name. Raises 400 and 403.

As in kube-apiserver the caller needs the right to ``impersonate`` each part: user or service account, uid, every group
and every extra value. ``request.impersonator`` is the authenticated user then.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterregistry.apimachinery.meta import errors, names
from clusterregistry.apimachinery.meta.field_errors import quoted
from clusterregistry.apiserver.authn.request_header import extra_of, text_of
from clusterregistry.apiserver.authn.user import ALL_UNAUTHENTICATED, ANONYMOUS, User, authenticated
from clusterregistry.apiserver.authz.forbidden import forbidden
from clusterregistry.apiserver.authz.interface import Attributes, Authorizer, decided
from clusterregistry.apiserver.endpoints.request import Filter, Handler, Request
from clusterregistry.apiserver.http.request import HeaderNames
from clusterregistry.apiserver.http.response import Answer, Reply, resolve

VERB = "impersonate"
EXTRA = "impersonate-extra-"
HEADERS = HeaderNames(("impersonate-user", "impersonate-uid", "impersonate-group"), prefixes=(EXTRA,))

SERVICE_ACCOUNT = "system:serviceaccount:"
SERVICE_ACCOUNTS = "system:serviceaccounts"
_LABEL_LIMIT = 63  # a namespace's name is a DNS label


def filter_for(authorizer: Authorizer) -> Filter:
    def wrap(inner: Handler) -> Handler:
        def handle(request: Request) -> Reply:
            return impersonate(request) if request.has_any_header(HEADERS) else inner(request)

        async def impersonate(request: Request) -> Answer:
            wanted = _named_user(request)
            if wanted is not None:
                for attributes in _required_rights(request.user, wanted):
                    decision = await decided(authorizer, attributes)
                    if not decision.allowed:
                        raise forbidden(attributes, decision)
                request.impersonator, request.user = request.user, _effective_user(wanted)
            request.drop_headers(HEADERS)
            return await resolve(inner(request))

        return handle

    return wrap


def _named_user(request: Request) -> User | None:
    """The user that the headers name, without implied groups. None if all are empty."""
    try:
        wanted = User(
            name=text_of(request.header("impersonate-user")),
            uid=text_of(request.header("impersonate-uid")),
            groups=tuple(text_of(group) for group in request.header_values("impersonate-group")),
            extra=extra_of(request.headers_beginning(EXTRA)),
        )
    except ValueError:
        raise errors.bad_request("the impersonation headers must be UTF-8") from None
    if wanted.name:
        return wanted
    if wanted.uid or wanted.groups or wanted.extra:
        raise errors.bad_request(f"requested {_described(wanted)} without impersonating a user name")
    return None


def _described(wanted: User) -> str:
    parts = [f"uid {quoted(wanted.uid)}"] if wanted.uid else []
    parts += [f"group {quoted(group)}" for group in wanted.groups]
    parts += [f"extra {quoted(key)}" for key in wanted.extra]
    return ", ".join(parts)


def _required_rights(user: User, wanted: User) -> Iterator[Attributes]:
    """What must be allowed, in kube-apiserver's order."""
    account = service_account(wanted.name)
    if account is not None:
        namespace, name = account
        yield _right(user, "serviceaccounts", name, namespace=namespace)
    else:
        yield _right(user, "users", wanted.name)
    if wanted.uid:
        yield _right(user, "uids", wanted.uid)
    for group in wanted.groups:
        yield _right(user, "groups", group)
    for key, values in wanted.extra.items():
        for value in values:
            yield _right(user, "userextras", value, subresource=key)


def _right(user: User, resource: str, name: str, *, namespace: str = "", subresource: str = "") -> Attributes:
    return Attributes(
        user=user,
        verb=VERB,
        is_resource_request=True,
        group="authentication.k8s.io" if resource in {"uids", "userextras"} else "",
        version="v1",
        resource=resource,
        subresource=subresource,
        name=name,
        namespace=namespace,
    )


def _effective_user(wanted: User) -> User:
    """The user with the groups that all users of that kind have, unless the caller named groups."""
    groups, account = wanted.groups, service_account(wanted.name)
    if account is not None and not groups:
        groups = (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[0]}")
    if wanted.name == ANONYMOUS and ALL_UNAUTHENTICATED not in groups:
        groups = (*groups, ALL_UNAUTHENTICATED)
    return authenticated(name=wanted.name, uid=wanted.uid, groups=groups, extra=wanted.extra)


def service_account(name: str) -> tuple[str, str] | None:
    """Namespace and name, if a user name is that of a service account."""
    parts = name.removeprefix(SERVICE_ACCOUNT).split(":")
    if not name.startswith(SERVICE_ACCOUNT) or len(parts) != 2:  # noqa: PLR2004 - namespace and name
        return None
    namespace, account = parts
    if "." in namespace or len(namespace) > _LABEL_LIMIT or names.name_errors(namespace) or names.name_errors(account):
        return None
    return namespace, account
