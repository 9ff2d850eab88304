"""A site of `pylogctl web` over a broker with ZooKeeper in memory, for tests of its pages."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from broker.errors import PartialError
from broker.topic import TopicPartition
from pylogctl import Client
from pylogctl.testing import memory_cluster
from pylogctl.web.app import make_app
from pylogctl.web.security import TokenAuthentication
from pylogctl.web.server import serving
from pylogctl.web.site import Site
from tests.support.waiting import wait_until

HOSTILE = {
    "script": b"<script>window.hacked = 1</script>",
    "svg": b"<svg onload='window.hacked = 2'>",
    "link": b"javascript:window.hacked=3",
    "direction": "\u202egnp.exe\u2066".encode(),
    "nul": b"before\x00after",
    "no UTF-8": b"\xff\xfe<b>",
    "template": b"{{ 7 * 6 }}{% raw %}",
    "attribute": b"\" onmouseover='window.hacked=4' x=\"",
    "json": b'{"<img src=x onerror=window.hacked=5>": "</script>", "n": 12345678901234567890.10}',
}
"""Values of messages that would do harm in a page that does not show them as text."""
HOSTILE_GROUP = "<svg onload=window.hacked=6> {{1+1}}"


@dataclass(frozen=True, slots=True)
class Served:
    """A site that is served."""

    url: str
    client: Client
    site: Site

    def get(self, path: str) -> tuple[int, str, dict[str, str]]:
        """Return status, text and headers of a page."""
        request = urllib.request.Request(self.url + path, headers={"Accept": "text/html"})
        try:
            response = urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return response.status, response.read().decode(), dict(response.headers)


@contextmanager
def served_site(*, allow_changes: bool = False) -> Iterator[Served]:
    """Serve a broker with topics `orders` and `hostile`, and groups `billing` and a hostile one."""
    with memory_cluster() as cluster, cluster.connect() as client:
        for value in HOSTILE.values():
            client.send("hostile", value)
        client.create_topic("orders", partitions=2)
        client.create_topic("empty")
        for index in range(2):
            values = [json.dumps({"id": number, "part": index}) for number in range(120)]
            client.send_many("orders", values, partition=f"0-{index}")
        topics = {"orders", "hostile"}
        wait_until(lambda: topics <= {one.name for one in client.topics()}, "topics")
        start, end = client.offsets("orders", "start"), client.offsets("orders", "end")
        wait_until(lambda: _imported(client, "billing", start), "a group")
        end |= client.offsets("hostile", "start")
        wait_until(lambda: _imported(client, HOSTILE_GROUP, end), "a group")
        with served(client, allow_changes=allow_changes) as found:
            yield found


@contextmanager
def served(
    client: Client, *, allow_changes: bool = False, authenticate: TokenAuthentication | None = None
) -> Iterator[Served]:
    """Serve the cluster of a client."""
    site = Site(client, allow_changes)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        with serving(make_app(site, {host}, authenticate), listener):
            yield Served(f"http://{host}", client, site)
    site.sampler.close()


def _imported(client: Client, group: str, offsets: dict[TopicPartition, int]) -> bool:
    """Import offsets, unless ZooKeeper does not know the new topic yet."""
    try:
        client.import_offsets(group, offsets)
    except PartialError:
        return False
    return True


@contextmanager
def web_process(
    *options: str, environ: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, int, int]]:
    """Run `pylogctl web`, without a token unless one is in `environ`; give host, port, pid."""
    command = [sys.executable, "-m", "pylogctl", "web", "--listen", "127.0.0.1:0", *options]
    command += [] if environ else ["--no-token"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **environ}
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            match = re.fullmatch(
                r"READY url=http://([\d.]+):(\d+)/ pid=(\d+) changes=False\n", line
            )
            assert match is not None, line
            yield match[1], int(match[2]), int(match[3])
        finally:
            process.terminate()
            assert process.wait(60) == 0
