"""Links lead somewhere."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from tests.docs import markdown
from tests.docs.markdown import ROOT


def broken(document: Path) -> list[str]:
    """The relative links of a document that lead to no file, or to no heading of it."""
    return [
        link for link in markdown.links(document.read_text(encoding="utf-8")) if not leads_somewhere(document, link)
    ]


def leads_somewhere(document: Path, link: str) -> bool:
    parts = urlsplit(link)
    if parts.scheme:
        return True
    target = (document.parent / unquote(parts.path)).resolve() if parts.path else document
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not parts.fragment or parts.fragment in markdown.anchors(target.read_text(encoding="utf-8"))


def test_every_relative_link_leads_to_a_file_and_a_heading_of_it() -> None:
    found = {markdown.name_of(document): broken(document) for document in markdown.documents()}
    assert {name: links for name, links in found.items() if links} == {}


def test_a_link_that_leads_nowhere_is_found() -> None:
    for link in ("nowhere.md", "../README.md#nothing-of-this-name", "../../elsewhere.md", "#no-such"):
        assert not leads_somewhere(ROOT / "docs" / "index.md", link)


def test_links_in_code_are_none() -> None:
    assert markdown.links("[a](b.md) `[c](d.md)`\n```text\n[e](f.md)\n```\n") == ["b.md"]


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    pages = {page for page in markdown.documents() if page.is_relative_to(ROOT / "docs")}
    reached, waiting = {index}, [index]
    while waiting:
        page = waiting.pop()
        for link in markdown.links(page.read_text(encoding="utf-8")):
            target = (page.parent / urlsplit(link).path).resolve()
            if target in pages - reached:
                reached.add(target)
                waiting.append(target)
    assert sorted(markdown.name_of(page) for page in pages - reached) == []
