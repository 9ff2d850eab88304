"""Contrast of the colours of the pages, computed as WCAG 2.2 defines it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import pylogctl.web.pages

CSS = (Path(pylogctl.web.pages.__file__).parent / "static" / "page.css").read_text()
_LIGHT, _DARK = re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)
SCHEMES = {
    name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))
    for name, block in (("light", _LIGHT), ("dark", _DARK))
}
TEXT = ("text", "muted", "link", "ok", "warn", "fail", "line-3")
GRAPHICS = ("line", "focus", "line-0", "line-1", "line-2", "line-3")


def luminance(color: str) -> float:
    channels = [int(color[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("background", ["page", "surface"])
@pytest.mark.parametrize(
    ("name", "least"), [*((one, 4.5) for one in TEXT), *((one, 3.0) for one in GRAPHICS)]
)
def test_contrast_of_text_and_lines_is_enough_in_both_schemes(
    scheme: str, background: str, name: str, least: float
) -> None:
    colors = SCHEMES[scheme]
    assert contrast(colors[name], colors[background]) >= least


def test_both_schemes_define_the_same_colours_and_rules_use_no_others() -> None:
    assert SCHEMES["light"].keys() == SCHEMES["dark"].keys()
    rules = CSS.replace(_LIGHT, "").replace(_DARK, "")
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b", rules)
    assert set(re.findall(r"var\(--([\w-]+)\)", rules)) <= SCHEMES["light"].keys()
