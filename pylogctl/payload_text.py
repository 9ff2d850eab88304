"""Payloads as text in documents: the option `--payload` and what its words mean."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Annotated, Literal

import typer

from pylogctl.escapes import escape

PayloadForm = Literal["utf8", "hex", "base64", "escape"]
PayloadOption = Annotated[
    PayloadForm,
    typer.Option("--payload", help="How payloads are shown.", rich_help_panel="Output"),
]

PAYLOAD_TEXTS: dict[PayloadForm, Callable[[bytes], str]] = {
    "utf8": lambda payload: payload.decode("utf-8", "backslashreplace"),
    "hex": bytes.hex,
    "base64": lambda payload: binascii.b2a_base64(payload, newline=False).decode(),
    "escape": escape,
}
