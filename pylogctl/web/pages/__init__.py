"""The pages for browsers, made from templates over the operations that the API has too."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pylogctl.web.problems import Problem
    from pylogctl.web.site import Route

ROUTES: tuple[Route, ...] = ()
"""Mounted at `/`: pages, and `/assets/NAME.HASH.EXT`."""


def render_error(problem: Problem) -> str:
    """Return the page that tells a browser of an error."""
    hints = "".join(f"<li>{escape(one)}</li>" for one in problem.hints)
    return (
        f'<!doctype html><html lang="en"><title>{escape(problem.title)}</title>'
        f"<h1>{problem.status} {escape(problem.title)}</h1><p>{escape(problem.detail)}</p>"
        f"<ul>{hints}</ul></html>"
    )
