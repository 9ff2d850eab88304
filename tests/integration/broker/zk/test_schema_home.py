"""The registry in ZooKeeper does what the one in a file does; of two changes one is repeated."""

from __future__ import annotations

from random import Random

import pytest

from broker import errors
from broker.schemas.store import ROOT, ChangedMeanwhileError, SchemaStore
from broker.schemas.values import SchemaType
from broker.schemas.zookeeper_home import ZooKeeperHome
from broker.zk.session import Session
from tests.unit.broker.schemas.test_store import (  # noqa: F401 - collected here, with this store
    test_check_when_a_level_is_set_then_it_decides,
    test_compatibility_when_a_subject_has_none_of_its_own_then_is_the_registrys,
    test_register_when_a_schema_is_there_then_its_id_is_shared_and_its_version_kept,
    test_register_when_an_id_is_given_then_it_is_kept_or_refused,
)


@pytest.fixture
def home(session: Session) -> ZooKeeperHome:
    session.create("/unrelated")  # makes the chroot
    return ZooKeeperHome(lambda: session)


@pytest.fixture
def store(home: ZooKeeperHome) -> SchemaStore:
    return SchemaStore(home)


@pytest.mark.parametrize("is_new", [True, False])
def test_commit_when_another_came_first_then_nothing_of_it_is_written(
    home: ZooKeeperHome, *, is_new: bool
) -> None:
    if not is_new:
        home.commit({ROOT: {"next_id": 1}}, home.begin()[1])
    _, state = home.begin()
    home.commit({ROOT: {"next_id": 2}, "ids/1": {"text": "first"}}, state)

    with pytest.raises(ChangedMeanwhileError):
        home.commit({ROOT: {"next_id": 3}, "ids/2": {"text": "second"}}, state)

    assert home.begin()[0] == {"next_id": 2}
    assert home.read("ids/2") is None


def test_subject_when_its_name_is_odd_then_is_a_node_of_its_own(store: SchemaStore) -> None:
    names = [".", "..", "a/b", "größe", "zookeeper"]
    for name in names:
        store.register(name, '"int"', SchemaType.AVRO)

    assert store.subjects() == names
    assert [one.subject for one in store.same_ids(1)] == names


def test_commit_when_too_large_for_a_request_then_is_refused_and_the_session_stays(
    home: ZooKeeperHome,
) -> None:
    _, state = home.begin()
    noise = Random(1).randbytes(200_000).hex()  # compressed to a half

    with pytest.raises(errors.InvalidSchemaError, match="ZooKeeper at once"):
        home.commit({ROOT: {}, "ids/1": {"text": noise}, "ids/2": {"text": noise}}, state)

    assert home.begin() == (None, None)
    home.commit({ROOT: {"next_id": 2}, "ids/1": {"text": noise}}, state)
    assert home.read("ids/1") == {"text": noise}


def test_node_when_damaged_then_the_error_names_it(store: SchemaStore, session: Session) -> None:
    store.register("s", '"int"', SchemaType.AVRO)
    session.set("/schemas/subjects/s", b"{broken")

    with pytest.raises(errors.SchemasUnavailableError, match="/schemas/subjects/s is damaged"):
        store.versions("s")
