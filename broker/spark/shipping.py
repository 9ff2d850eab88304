"""The package as a zip for executors that do not have it.

    spark.sparkContext.addPyFile(str(package_zip(Path("/tmp"))))  # before the data source is used

An installed package takes precedence, with its compiled codec. Elsewhere executors need Python,
PySpark and PyArrow (for Avro payloads also fastavro, for other compression than gzip also
cramjam, for patterns google-re2),
and the codec runs in Python, as compiled modules cannot be loaded from a zip.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

_SUFFIXES = {".py", ".pyi"}
_PREFER_INSTALLED = """

def _prefer_installed() -> None:
    import sys
    from importlib.machinery import PathFinder
    from pathlib import Path

    archive = str(Path(__file__).parents[1])
    found = PathFinder.find_spec(__name__, [one for one in sys.path if one != archive])
    if found is not None and found.origin is not None:
        __path__[:] = list(found.submodule_search_locations or ())


_prefer_installed()
"""  # Spark puts the zip before all installed packages


def package_zip(directory: Path) -> Path:
    """Write the package `broker` to a zip file in a directory, and return its path."""
    top = Path(__file__).parents[1]
    preferring = (top / "__init__.py").read_text() + _PREFER_INSTALLED
    path = directory / "pylogctl.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(top.rglob("*")):
            if source == top / "__init__.py":
                archive.writestr(f"{top.name}/__init__.py", preferring)
            elif source.suffix in _SUFFIXES:
                archive.write(source, source.relative_to(top.parent))
    return path
