from __future__ import annotations

from tests.support.bugs import expects_bugs as expects_bugs
from tests.support.bugs import no_bugs as no_bugs
from tests.support.log_fixtures import clock as clock
from tests.support.log_fixtures import faulty_disk as faulty_disk
from tests.support.log_fixtures import log_format as log_format
from tests.support.log_fixtures import make_log as make_log
from tests.support.log_fixtures import schedule as schedule
