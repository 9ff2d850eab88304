from __future__ import annotations

import broker


def test_public_names_when_asked_for_then_each_is_what_its_module_has() -> None:
    names = broker.__all__  # type: ignore[attr-defined]  # made at run time

    assert {"Broker", "ConsumerConnector", "Producer"} <= set(names)
    values = [getattr(broker, name) for name in names]
    modules = {one.__module__ for one in values if not isinstance(one, int)}
    assert {one for one in modules if not one.startswith("broker.")} == {"pylogctl"}  # errors


def test_public_names_when_asked_for_then_have_what_a_simple_consumer_is_called_with() -> None:
    names = broker.__all__  # type: ignore[attr-defined]  # as above
    assert {"FetchRequest", "LATEST_TIME", "EARLIEST_TIME"} <= set(names)


def test_name_when_not_public_then_the_package_has_no_such_attribute() -> None:
    assert not hasattr(broker, "Nothing")
