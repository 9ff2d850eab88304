from __future__ import annotations

import os
from pathlib import Path

import pytest

from broker.files import is_open_to_others, opened, write_all


def status(mode: int, *, uid: int = 0) -> os.stat_result:
    return os.stat_result((0o100000 | mode, 1, 1, 1, uid, 0, 10, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "directory", "is_open"),
    [
        (0o600, 1000, "elsewhere", False),
        (0o440, 0, "given", False),
        (0o440, 1000, "given", True),
        (0o460, 0, "given", True),
        (0o444, 0, "given", True),
        (0o440, 0, "elsewhere", True),
    ],
)
def test_secret_file_is_readable_by_a_group_only_as_systemd_gives_it(
    mode: int,
    uid: int,
    directory: str,
    is_open: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "given"))
    file = tmp_path / directory / "zk.secret"

    assert is_open_to_others(file, status(mode, uid=uid)) is is_open


def test_credential_of_another_service_is_known_by_its_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "")  # this one has none
    file = Path("/run/credentials/broker.service/broker.key")  # as doctor sees it

    assert is_open_to_others(Path("broker.key"), status(0o440))
    assert not is_open_to_others(file, status(0o440))
    assert is_open_to_others(Path("/run/broker.key"), status(0o440))


def test_link_out_of_the_directory_of_credentials_is_not_one_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given").mkdir()
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "given"))
    link = tmp_path / "given" / "zk.secret"
    link.symlink_to(tmp_path / "elsewhere")

    assert is_open_to_others(link, status(0o440))


def test_opened_when_a_call_on_the_descriptor_fails_then_the_error_names_the_file() -> None:
    with (
        pytest.raises(OSError, match="No space left on device: '/dev/full'"),
        opened(Path("/dev/full"), os.O_WRONLY) as fd,
    ):
        write_all(fd, b"x")
