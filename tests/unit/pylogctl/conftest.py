from __future__ import annotations

from tests.support.command_line import clean_environment as clean_environment
from tests.support.command_line import invoke as invoke
