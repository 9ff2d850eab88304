"""What Spark needs and an installation without the extra `spark` lacks."""

from __future__ import annotations

from importlib.util import find_spec

from broker.errors import ConfigError
from broker.spark.java_home import MINIMUM_VERSION
from broker.zk.java import Java, find_java

_PACKAGES = {"pyspark": "PySpark", "pyarrow": "PyArrow"}


def check_requirements() -> Java:
    """Check that Spark could be started, without starting it.

    Returns:
        The Java it would run on.

    Raises:
        ConfigError: a package or Java is missing; the text says which, and how to install it.
    """
    for package, name in _PACKAGES.items():
        check_package(package, name)
    return find_java(minimum_version=MINIMUM_VERSION)


def check_package(package: str, name: str) -> None:
    """Check that a package of the extra `spark` is installed.

    Args:
        package: as it is imported.
        name: as people call it.

    Raises:
        ConfigError: it is not.
    """
    if find_spec(package) is None:
        raise ConfigError(f"{name} is not installed; try: pip install 'pylogctl[spark]'")
