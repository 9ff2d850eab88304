"""Which engine of the codec runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from broker.protocol.codec import VARIABLE
from tests.support.codec_engines import load_engine

REPOSITORY = Path(__file__).parents[4]
DESCRIBE = "from broker.protocol import codec; print(codec.scan.__module__, codec.describe())"
NOT_BUILT = "import sys; sys.modules['broker.protocol._codec'] = None; "
OUTDATED = (
    "import sys, types; stale = types.ModuleType('broker.protocol._codec'); stale.INTERFACE = 0; "
    "sys.modules[stale.__name__] = stale; "
)


def run(program: str, wanted: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if wanted is not None:
        environment[VARIABLE] = wanted
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


def test_codec_when_python_is_asked_for_then_is_the_plain_one() -> None:
    found = run(DESCRIBE, "python")

    assert found.stdout == "broker.protocol._codec_python plain Python, CRC-32 by zlib\n"


@pytest.mark.parametrize("wanted", [None, "", "compiled"])
def test_codec_when_built_and_not_forbidden_then_is_the_compiled_one(wanted: str | None) -> None:
    load_engine("compiled")

    found = run(DESCRIBE, wanted)

    assert found.stdout.startswith("broker.protocol._codec compiled, CRC-32 by ")


@pytest.mark.parametrize("problem", [NOT_BUILT, OUTDATED])
@pytest.mark.parametrize("wanted", [None, ""])
def test_codec_when_not_built_or_outdated_then_is_the_plain_one(
    problem: str, wanted: str | None
) -> None:
    found = run(problem + DESCRIBE, wanted)

    assert found.stdout.startswith("broker.protocol._codec_python ")


@pytest.mark.parametrize(
    ("problem", "reason"), [(NOT_BUILT, "it is not built"), (OUTDATED, "of another version")]
)
def test_codec_when_asked_for_but_not_there_then_says_why_and_what_to_do(
    problem: str, reason: str
) -> None:
    found = run(problem + DESCRIBE, "compiled")

    assert found.returncode == 1
    assert "ConfigError: PYLOGCTL_CODEC asks for the compiled codec, but" in found.stderr
    assert reason in found.stderr
    assert "C compiler" in found.stderr


def test_codec_when_an_unknown_one_is_asked_for_then_is_refused() -> None:
    found = run(DESCRIBE, "rust")

    assert "ConfigError: PYLOGCTL_CODEC is 'rust'; set it to python or compiled" in found.stderr
