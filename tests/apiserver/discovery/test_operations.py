"""The paths and the ids of operations, by the scope and the verbs of a kind."""

from __future__ import annotations

from clusterregistry.apiserver.discovery.operations import Served
from tests.apiserver.discovery.examples import NOTES, RESOURCES


def operations(document: str) -> dict[str, list[str]]:
    contents = Served(resources=(*RESOURCES, NOTES)).by_document()[document]
    return {path.path: [operation.id for operation in path.operations] for path in contents.paths[1:]}


def test_a_namespaced_kind_has_its_paths_in_a_namespace_and_a_list_of_all_namespaces() -> None:
    assert operations("api/v1") == {
        "/api/v1/namespaces/{namespace}/notes": ["listCoreV1NamespacedNote", "createCoreV1NamespacedNote"],
        "/api/v1/namespaces/{namespace}/notes/{name}": ["readCoreV1NamespacedNote"],
        "/api/v1/namespaces/{namespace}/notes/{name}/status": ["replaceCoreV1NamespacedNoteStatus"],
        "/api/v1/notes": ["listCoreV1NoteForAllNamespaces"],
        "/api/v1/watch/notes": ["watchCoreV1NoteListForAllNamespaces"],
        "/api/v1/watch/namespaces/{namespace}/notes": ["watchCoreV1NamespacedNoteList"],
        "/api/v1/watch/namespaces/{namespace}/notes/{name}": ["watchCoreV1NamespacedNote"],
    }


def test_a_version_in_another_group_has_its_paths_there() -> None:
    assert list(operations("apis/notes.example.org/v1")) == [
        "/apis/notes.example.org/v1/namespaces/{namespace}/notes",
        "/apis/notes.example.org/v1/namespaces/{namespace}/notes/{name}",
        "/apis/notes.example.org/v1/namespaces/{namespace}/notes/{name}/status",
        "/apis/notes.example.org/v1/notes",
        "/apis/notes.example.org/v1/watch/notes",
        "/apis/notes.example.org/v1/watch/namespaces/{namespace}/notes",
        "/apis/notes.example.org/v1/watch/namespaces/{namespace}/notes/{name}",
    ]
