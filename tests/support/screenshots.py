"""Pictures of the pages of `pylogctl web` for its documentation: `make screenshots`.

`python -m tests.support.screenshots FOLDER` runs three brokers, producers and a consumer for a
minute, and a Chromium, which has to be installed.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import socket
import sys
import threading
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from pylogctl import Client
from pylogctl.testing import Cluster, memory_cluster
from pylogctl.web.app import make_app
from pylogctl.web.sampler import StatusSampler
from pylogctl.web.server import serving
from pylogctl.web.site import Site

_SECONDS = 60
_PICTURES = {
    "overview.png": ("/", "light"),
    "messages.png": ("/topics/orders/messages?limit=20", "light"),
    "group.png": ("/groups/billing", "dark"),
}


def _produce(client: Client, stop: threading.Event) -> None:
    start_s = time.monotonic()
    chance = random.Random(7)
    with client.producer(linger=0.05) as producer:
        for number in range(1 << 30):
            wave = 1.4 + math.sin((time.monotonic() - start_s) / 6)
            for topic, rate in (("orders", 120), ("clicks", 300), ("payments", 30)):
                for _ in range(chance.randrange(1 + int(rate * wave / 10))):
                    order = {"id": number, "customer": f"c{chance.randrange(900)}"}
                    producer.send(
                        topic, json.dumps(order | {"amount": chance.randrange(9900) / 100})
                    )
            if stop.wait(0.1):
                return


def _consume(client: Client, stop: threading.Event) -> None:
    with client.group("billing", "orders", start="earliest", commit_every=0.5, idle=5) as group:
        for _ in group:
            if stop.wait(0.006):
                return


def _take(cluster: Cluster, folder: Path) -> None:
    stop = threading.Event()
    with cluster.connect() as client:
        for topic, partitions in (("orders", 6), ("clicks", 6), ("payments", 3)):
            client.create_topic(topic, partitions=partitions, replicas=3)
        work = [threading.Thread(target=one, args=(client, stop)) for one in (_produce, _consume)]
        for one in work:
            one.start()
        site = Site(client, allow_changes=True)
        site.sampler = StatusSampler(client, interval_s=1)
        site.sampler.start()
        time.sleep(_SECONDS)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            host = f"127.0.0.1:{listener.getsockname()[1]}"
            with serving(make_app(site, {host}), listener), sync_playwright() as playwright:
                browser = playwright.chromium.launch(
                    executable_path=shutil.which("chromium"),
                    args=["--disable-dev-shm-usage"] + ["--no-sandbox"] * (os.geteuid() == 0),
                )
                for name, (path, scheme) in _PICTURES.items():
                    context = browser.new_context(
                        base_url=f"http://{host}",
                        color_scheme="dark" if scheme == "dark" else "light",
                        viewport={"width": 1000, "height": 760},
                    )
                    page = context.new_page()
                    page.goto(path)
                    if name == "messages.png":
                        page.locator("td.value summary").nth(2).click()
                    page.screenshot(path=folder / name)
                    context.close()
                browser.close()
        site.sampler.close()
        stop.set()
        for one in work:
            one.join()


if __name__ == "__main__":
    with memory_cluster(3) as brokers:
        _take(brokers, Path(sys.argv[1]))
