from __future__ import annotations

import importlib.resources

import broker


def test_public_names_when_asked_for_then_each_is_what_its_module_has() -> None:
    names = broker.__all__  # type: ignore[attr-defined]  # made at run time, the stub has none

    assert {"Broker", "ConsumerConnector", "Producer"} <= set(names)
    for name in names:
        assert getattr(broker, name).__module__.startswith("broker.")


def test_name_when_not_public_then_the_package_has_no_such_attribute() -> None:
    assert not hasattr(broker, "Nothing")


def test_stub_when_installed_then_stands_beside_the_package() -> None:
    assert importlib.resources.files("broker").joinpath("__init__.pyi").is_file()
