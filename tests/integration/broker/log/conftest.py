from __future__ import annotations

from tests.support.log_fixtures import clock as clock
from tests.support.log_fixtures import faulty_disk as faulty_disk
from tests.support.log_fixtures import log_format as log_format
from tests.support.log_fixtures import make_log as make_log
from tests.support.log_fixtures import make_manager as make_manager
from tests.support.log_fixtures import schedule as schedule
