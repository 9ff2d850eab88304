"""Plug-ins by name: what is loaded, and what an error says of one that is not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker import plugins
from broker.errors import ConfigError, PluginError
from broker.plugins import CALLBACKS, ENCODER, EVENT_HANDLER, PARTITIONER, Kind, installed, load

MODULE = "plugins_of_a_unit_test"
SOURCE = """
def first(key, count):
    return 0
def failing(key, count):
    raise KeyError(key)
def ending(key, count):
    raise SystemExit(3)
def strange(key, count):
    return "0"
def narrow(key):
    return 0
NUMBER = 7
class Chooser:
    def __init__(self, place="0"):
        self.place = int(place)
    def __call__(self, key, count):
        return self.place
class Broken:
    def __init__(self):
        raise OSError("no such store")
class Nested:
    inner = first
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the path of modules, with one of plug-ins and one that cannot be imported."""
    (tmp_path / f"{MODULE}.py").write_text(SOURCE)
    (tmp_path / f"{MODULE}_broken.py").write_text("import no_such_module_anywhere")
    (tmp_path / f"{MODULE}_ending.py").write_text("raise SystemExit(1)")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in (MODULE, f"{MODULE}_broken", f"{MODULE}_ending"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def package(folder: Path, name: str, *entries: str) -> None:
    """Install a package of a version 1.0 with these entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("\n".join(["[pylogctl.plugins]", *entries]))


@pytest.mark.parametrize("name", ["first", "Chooser", "Nested.inner"])
def test_load_when_module_and_name_are_given_then_is_called_as_one(name: str) -> None:
    assert load(PARTITIONER, "partitioner.class", f"{MODULE}:{name}")(b"k", 3) == 0


def test_load_when_properties_are_given_then_they_are_arguments_of_the_class() -> None:
    assert load(PARTITIONER, "x", f"{MODULE}:Chooser", {"place": "2"})(b"k", 3) == 2
    with pytest.raises(ConfigError, match="takes no properties, as it is no class"):
        load(PARTITIONER, "x", f"{MODULE}:first", {"place": "2"})
    with pytest.raises(ConfigError, match=r"constructor failed: TypeError: .*'plaice'"):
        load(PARTITIONER, "x", f"{MODULE}:Chooser", {"plaice": "2"})


@pytest.mark.parametrize(
    ("kind", "text", "cause"),
    [
        (PARTITIONER, f"{MODULE}:frist", f"'{MODULE}' has no 'frist'; did you mean 'first'?"),
        (PARTITIONER, f"{MODULE}:NUMBER", "it is int, which cannot be called"),
        (PARTITIONER, f"{MODULE}:narrow", "it does not take (key, count)"),
        (ENCODER, f"{MODULE}:first", "it does not take (message)"),
        (CALLBACKS, f"{MODULE}:Chooser", "it has no method before_enqueue"),
        (PARTITIONER, f"{MODULE}:Broken", "its constructor failed: OSError: no such store"),
        (PARTITIONER, f"{MODULE}_broken:x", "No module named 'no_such_module_anywhere'"),
        (PARTITIONER, f"{MODULE}_ending:x", f"cannot import '{MODULE}_ending': SystemExit: 1"),
        (PARTITIONER, "no_such_module:x", "cannot import 'no_such_module'"),
        (PARTITIONER, f"{MODULE}:", "it must be module:name"),
        (PARTITIONER, "..:x", "cannot import '..'"),
        (PARTITIONER, "hahs", "no installed package has an entry point partitioner.hahs"),
        (PARTITIONER, "com.acme.ByRegion", "it looks like a class of Java"),
        (EVENT_HANDLER, "kafka.serializer.DefaultEncoder", "it looks like a class of Java"),
    ],
)
def test_load_when_it_cannot_be_then_error_names_setting_plugin_and_cause(
    kind: Kind, text: str, cause: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(kind, "some.setting", text)

    assert str(caught.value).startswith(f"some.setting={text}: ")
    assert cause in str(caught.value)
    assert kind.usage in caught.value.hints


def test_load_when_an_entry_point_is_named_then_its_kind_must_fit(folder: Path) -> None:
    package(folder, "acme", f"partitioner.first = {MODULE}:first", "decoder.other = nowhere:x")
    assert load(PARTITIONER, "x", "first")(None, 1) == 0
    with pytest.raises(ConfigError, match=r"no installed package has an entry point encoder.first"):
        load(ENCODER, "x", "first")
    with pytest.raises(ConfigError, match="did you mean 'first'"):
        load(PARTITIONER, "x", "frist")
    found = {one.entry.name: plugins.problem_of(one) for one in installed()}
    assert found["partitioner.first"] is None
    assert "cannot import 'nowhere'" in str(found["decoder.other"])


def test_load_when_two_packages_have_the_entry_point_then_names_both(folder: Path) -> None:
    for name in ("acme", "emca"):
        package(folder, name, f"partitioner.first = {MODULE}:first")
    with pytest.raises(ConfigError, match=r"acme 1\.0 and emca 1\.0|emca 1\.0 and acme 1\.0"):
        load(PARTITIONER, "x", "first")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("failing", "--partitioner {} failed: KeyError: b'k'"),
        ("ending", "--partitioner {} failed: SystemExit: 3"),
        ("strange", "--partitioner {} returned '0'"),
    ],
)
def test_call_when_it_fails_or_returns_another_type_then_error_names_it(
    name: str, message: str
) -> None:
    plugin = load(PARTITIONER, "--partitioner", f"{MODULE}:{name}")
    with pytest.raises(PluginError) as caught:
        plugin(b"k", 2)
    assert str(caught.value) == message.format(f"{MODULE}:{name}")


def test_program_when_no_setting_names_a_plugin_then_it_loads_nothing_of_them() -> None:
    text = "import sys, broker.producer.producer; sys.exit('broker.plugins' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0
