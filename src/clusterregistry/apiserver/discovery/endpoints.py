"""The discovery endpoints by path."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cached_property

from clusterregistry.apimachinery.codecs import yaml_codec
from clusterregistry.apimachinery.meta import errors
from clusterregistry.apiserver.discovery import documents, groups
from clusterregistry.apiserver.discovery.documents import Answer, Document
from clusterregistry.apiserver.discovery.groups import WireObject
from clusterregistry.apiserver.discovery.openapi_v2 import OpenAPIV2
from clusterregistry.apiserver.discovery.openapi_v3 import OpenAPIV3
from clusterregistry.apiserver.discovery.operations import Served

_AGGREGATED_HEADERS = {"Vary": "Accept", "Cache-Control": "public"}


class Discovery:
    """Serves ``/api``, ``/apis`` and below down to the version, and ``/openapi``.

    ``server_address`` is the host and port of this server for clients; ``title`` and ``version`` are those of the
    OpenAPI documents. ``objects`` are the plain documents by path.
    """

    def __init__(self, served: Served, *, server_address: str, title: str, version: str) -> None:
        self._served = served
        self._title = title
        self._version = version
        self.objects: Mapping[str, WireObject] = self._plain_objects(server_address)
        self._plain = {path: documents.plain(body) for path, body in self.objects.items()}
        self._aggregated = self._aggregated_documents()

    @cached_property
    def openapi_v2(self) -> OpenAPIV2:
        return OpenAPIV2(self._served, title=self._title, version=self._version)

    @cached_property
    def openapi_v3(self) -> OpenAPIV3:
        return OpenAPIV3(self._served, title=self._title, version=self._version)

    def plain(self, path: str) -> Document | None:
        """The plain document of a path without a slash at its end."""
        return self._plain.get(path)

    def aggregated(self, path: str, accept: str) -> Document | None:
        """The aggregated form of ``/api`` or ``/apis`` if the client prefers it; else None."""
        if path not in self._aggregated:
            return None
        version = documents.aggregated_version(accept, groups.AGGREGATED_VERSIONS)
        return None if version is None else self._aggregated[path][version]

    def answer(
        self, path: str, *, now: datetime, accept: str = "", if_none_match: str = "", wanted_hash: str = ""
    ) -> Answer | None:
        """The response to a GET; None for any other path. ``wanted_hash`` is ``?hash=``. Raises 406."""
        path = path.rstrip("/")
        if path == "/openapi/v2":
            return self.openapi_v2.answer(accept=accept, if_none_match=if_none_match)
        if path == "/openapi/v3":
            return documents.answer(self.openapi_v3.index, if_none_match=if_none_match)
        if path.startswith("/openapi/v3/"):
            name = path.removeprefix("/openapi/v3/")
            return self.openapi_v3.answer(
                name, now=now, accept=accept, wanted_hash=wanted_hash, if_none_match=if_none_match
            )
        return self._group_answer(path, accept=accept, if_none_match=if_none_match)

    def _group_answer(self, path: str, *, accept: str, if_none_match: str) -> Answer | None:
        combined = self.aggregated(path, accept)
        if combined is not None:
            return documents.answer(combined, if_none_match=if_none_match, headers=_AGGREGATED_HEADERS)
        document = self._in_media_type(path, accept)
        if document is None:
            return None
        # a cache must not return the plain form to clients that ask for the aggregated one
        headers = {"Vary": "Accept"} if path in self._aggregated else None
        return documents.answer(document, headers=headers)

    def _in_media_type(self, path: str, accept: str) -> Document | None:
        document = self._plain.get(path)
        if document is None:
            return None
        media_type = documents.plain_media_type(accept)
        if media_type is None:
            raise errors.not_acceptable(documents.PLAIN)
        if media_type == document.content_type:
            return document
        return Document(yaml_codec.encode(self.objects[path]), media_type)

    def _plain_objects(self, server_address: str) -> dict[str, WireObject]:
        resources, enable_watch = self._served.resources, self._served.enable_watch
        found: dict[str, WireObject | None] = {
            "/api": groups.api_versions(server_address=server_address),
            f"/api/{groups.CORE_VERSION}": groups.api_resource_list(
                resources, group="", version=groups.CORE_VERSION, enable_watch=enable_watch
            ),
            "/apis": groups.api_group_list(resources),
        }
        for group, versions in groups.named_group_versions(resources).items():
            found[f"/apis/{group}"] = groups.api_group(resources, group)
            for version in versions:
                found[f"/apis/{group}/{version}"] = groups.api_resource_list(
                    resources, group=group, version=version, enable_watch=enable_watch
                )
        return {path: body for path, body in found.items() if body is not None}

    def _aggregated_documents(self) -> dict[str, dict[str, Document]]:
        resources, enable_watch = self._served.resources, self._served.enable_watch
        core, named = {}, {}
        for version in groups.AGGREGATED_VERSIONS:
            core_list = groups.aggregated_core(resources, version, enable_watch=enable_watch)
            core[version] = groups.aggregated_document(core_list, version)
            group_list = groups.aggregated_groups(resources, version, enable_watch=enable_watch)
            named[version] = groups.aggregated_document(group_list, version)
        return {"/api": core, "/apis": named}
