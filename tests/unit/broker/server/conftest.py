from __future__ import annotations

from tests.support.bugs import expects_bugs as expects_bugs
from tests.support.bugs import no_bugs as no_bugs
