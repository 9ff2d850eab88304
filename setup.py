"""Build of the compiled codec, which is optional: without a C compiler the plain one serves.

All else about the package stands in pyproject.toml.
"""

from __future__ import annotations

from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

NATIVE = Path("broker/protocol/native")


class BuildWhatCan(build_ext):
    """Builds the extension if there is a compiler, and forgets it if there is none."""

    def run(self) -> None:
        """Build, and look what came of it."""
        super().run()
        if not all(Path(path).exists() for path in self.get_outputs()):
            self.extensions = []
            self.distribution.ext_modules = []


class TagWhatIsIn(bdist_wheel):
    """Tags a wheel for every machine if nothing in it is compiled."""

    def run(self) -> None:
        """Build first, as the tag depends on it."""
        self.run_command("build")
        self.root_is_pure = not self.distribution.ext_modules
        super().run()


setup(
    ext_modules=[
        Extension(
            "broker.protocol._codec",
            sources=sorted(str(path) for path in NATIVE.glob("*.c")),
            depends=sorted(str(path) for path in NATIVE.glob("*.h")),
            extra_compile_args=["-O3"],  # a CFLAGS of the environment drops Python's own
            py_limited_api=True,
            optional=True,
        )
    ],
    cmdclass={"build_ext": BuildWhatCan, "bdist_wheel": TagWhatIsIn},
    options={
        "bdist_wheel": {"py_limited_api": "cp311"},
        # By a path, not by hooks of the import system: Spark lists the modules on the path to find
        # `pyspark_pylog`.
        "editable_wheel": {"mode": "compat"},
    },
)
