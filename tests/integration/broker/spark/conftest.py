from __future__ import annotations

from tests.support.segments import write_segments as write_segments
from tests.support.spark_session import spark as spark
