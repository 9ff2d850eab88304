"""The Spark session and the logs that the tests of the jobs use, for the commands on them."""

from tests.broker.spark.conftest import spark as spark
from tests.broker.spark.conftest import write_segments as write_segments
