"""The pages of the site: `make site` builds them, with warnings as errors, in a venv of its own."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import broker
import pylogctl
import pylogctl.testing
from docs import site_pages

DOCS = site_pages.REPOSITORY / "docs"


def pages_of(nav: object) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, dict):
        for inner in nav.values():
            yield from pages_of(inner)
    elif isinstance(nav, list):
        for inner in nav:
            yield from pages_of(inner)


def test_navigation_when_compared_with_the_documents_then_names_each_once() -> None:
    settings = yaml.safe_load((site_pages.REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))
    named = list(pages_of(settings["nav"]))

    documents = [path.relative_to(DOCS.parent).as_posix() for path in DOCS.rglob("*.md")]
    assert sorted(one for one in named if one.startswith("docs/")) == sorted(documents)
    assert [one for one in named if not (DOCS.parent / one).exists()] == []


def test_reference_when_compared_with_the_packages_then_has_every_public_name_once() -> None:
    found = re.findall(r"^::: (\S+)$", (DOCS / "reference.md").read_text(encoding="utf-8"), re.M)
    objects = [pkgutil.resolve_name(name) for name in found]

    face = [getattr(pylogctl, name) for name in vars(pylogctl)["_MODULE_OF"]]
    face += [getattr(broker, name) for name in vars(broker)["_MODULE_OF"]]
    face += [one for name, one in vars(pylogctl.testing).items() if _is_face(name, one)]
    assert [one for one in face if one not in objects] == []
    assert len(found) == len(set(found)) == len(objects)


def _is_face(name: str, one: object) -> bool:
    return callable(one) and not name.startswith("_")


@pytest.mark.parametrize("page", site_pages.manual_pages(), ids=lambda page: page.name)
def test_manual_page_when_made_markdown_then_no_macro_is_left(page: Path) -> None:
    text = site_pages.to_markdown(page)
    prose = re.sub(r"```text\n.*?```", "", text, flags=re.S)

    assert re.findall(r"^\.[A-Z].*|\\f[BIR]", prose, re.M) == []
    assert text.count("```") % 2 == 0
    assert len(re.findall(r"^## ", text, re.M)) == page.read_text(encoding="utf-8").count("\n.SH ")


def test_manual_page_when_made_markdown_then_has_terms_code_and_literal_characters(
    tmp_path: Path,
) -> None:
    page = tmp_path / "pylogctl-x.1"
    page.write_text(
        '.TH X 1\n.SH NAME\nx \\- takes a*b\n.SH "SEE ALSO"\n.TP\n\\fB\\-\\-at\\fR \\fISPEC\\fR\n'
        "Where.\n.sp\nMore.\n.PP\n.RS 4\n.nf\nprintf \\(aqa\\en\\(aq\n.fi\n.RE\n",
        encoding="utf-8",
    )

    assert site_pages.to_markdown(page).split("\n") == [
        *("# pylogctl-x(1)", "", "## Name", "", "x - takes a\\*b", "", "## See also", "", ""),
        *("`--at` *SPEC*", ":   Where.", "", "    More.", "", "", "```text", "printf 'a\\n'"),
        *("```", "", ""),
    ]
