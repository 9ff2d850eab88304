"""The results of checks."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    """FAIL if something required is missing, WARN if something optional is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(NamedTuple):
    """The result of a check, with details and a hint how to repair it."""

    verdict: Verdict
    check: str
    detail: str
    hint: str = ""
