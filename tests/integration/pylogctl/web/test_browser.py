"""The pages in a real browser, over a real broker."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

from pylogctl.testing import memory_cluster
from tests.support.waiting import wait_until
from tests.support.web_site import HOSTILE, HOSTILE_GROUP, Served, served_site
from tests.support.web_site import served as serve

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
expect.set_options(timeout=60_000)  # of every assertion; a busy machine needs more than 5 s
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with served_site(allow_changes=True) as served:
        served.site.sampler.look()
        served.site.sampler.look()
        served.site.sampler.look_at_groups()
        yield served


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    arguments = ["--disable-dev-shm-usage"] + ["--no-sandbox"] * (os.geteuid() == 0)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, served: Served) -> Iterator[Page]:
    """A page in which no error may happen, nothing may be blocked, and no dialog may open."""
    problems: list[str] = []
    with ExitStack() as closing:
        context = browser.new_context(base_url=served.url)
        closing.callback(context.close)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda one: problems.append(one.text) if one.type == "error" else None)
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        yield page
        assert page.evaluate("window.hacked") is None
    assert [one for one in problems if "status of 422" not in one] == []  # told in the page


def test_overview_leads_to_the_messages_of_a_topic(page: Page) -> None:
    page.goto("/")
    expect(page.get_by_text("all partitions are led and in sync")).to_be_visible()
    page.get_by_role("link", name="orders").click()
    page.get_by_role("link", name="Messages").click()
    expect(page.locator("table.messages tbody tr")).to_have_count(50)
    page.get_by_role("link", name="Older").click()
    page.get_by_role("link", name="Newer").click()
    first = page.locator("td.value details").first
    first.locator("summary").first.click()
    expect(first.locator(".tree")).to_contain_text("id: 119")


def test_hostile_payloads_and_names_are_text(page: Page) -> None:
    page.goto("/topics/hostile/messages")
    for name in ("script", "svg", "link", "template", "attribute"):
        expect(page.locator("main")).to_contain_text(HOSTILE[name].decode())
    for details in page.locator("td.value > details").all():
        details.locator("summary").first.click()
    page.get_by_role("link", name="Open").last.click()
    expect(page.locator(".tree")).to_contain_text("<img src=x onerror=window.hacked=5>")
    page.goto("/groups")
    page.get_by_role("link", name=HOSTILE_GROUP).click()
    expect(page.locator("h1")).to_have_text(HOSTILE_GROUP)


def test_values_change_by_themselves_until_paused(page: Page, served: Served) -> None:
    page.clock.install()
    page.goto("/topics/orders")
    shown = page.locator('live-value[data-key="topic/orders/messages"]')
    figures = page.locator("live-charts figure")
    page.evaluate("document.querySelector('live-value').textContent = 'old'")
    page.evaluate("document.querySelector('live-charts').replaceChildren()")
    page.clock.run_for(6000)
    expect(shown).not_to_have_text("old")
    expect(figures).to_have_count(2)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    page.evaluate("document.querySelector('live-value').textContent = 'old'")
    page.evaluate("document.querySelector('live-charts').replaceChildren()")
    page.clock.run_for(20_000)
    expect(shown).to_have_text("old")
    expect(figures).to_have_count(0)


def test_charts_when_their_request_is_under_way_then_are_not_requested_again(page: Page) -> None:
    held: list[Route] = []
    page.route("**/charts?*", lambda route: held.append(route))
    page.clock.install()
    page.goto("/topics/orders")
    for number in (1, 2):
        for _ in range(3):
            with page.expect_response("**/values?*"):
                page.clock.run_for(5000)
        assert len(held) == number
        page.evaluate("document.querySelector('live-charts').replaceChildren()")
        held[-1].continue_()
        expect(page.locator("live-charts figure")).to_have_count(2)


def test_keyboard_alone_reaches_everything(page: Page) -> None:
    page.goto("/")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("To the content")
    page.keyboard.press("Enter")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    for key, heading in (("t", "Topics"), ("g", "Groups"), ("b", "Brokers"), ("h", "Health")):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.locator("h1")).to_have_text(heading)
    page.keyboard.press("/")
    page.keyboard.type("orders")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("orders")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page.locator("h1")).to_have_text("Topics")
    while page.evaluate("document.activeElement.textContent") != "Size":
        page.keyboard.press("Tab")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline != "none"
    page.keyboard.press("Enter")
    expect(page.locator('th[aria-sort="ascending"]')).to_have_text("Size")


def test_keys_can_be_turned_off_and_on_again(page: Page) -> None:
    page.goto("/topics")
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Use these keys").uncheck()
    page.get_by_role("button", name="Close").click()
    page.goto("/groups")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Use these keys").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/topics", "/topics/orders", "/topics/orders/messages"])
def test_small_screen_needs_no_scrolling_sideways(page: Page, path: str) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.goto(path)
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 360


def test_pages_work_without_script(browser: Browser, served: Served) -> None:
    context = browser.new_context(base_url=served.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/topics")
    page.get_by_label("Name contains").fill("ord")
    page.get_by_role("button", name="Filter").click()
    page.get_by_role("link", name="orders").click()
    page.get_by_role("link", name="Messages").click()
    page.get_by_label("Contains").fill('"id": 7')
    page.get_by_role("button", name="Show").click()
    expect(page.locator("table.messages tbody tr")).to_have_count(22)
    context.close()


def test_favourites_stay(page: Page) -> None:
    page.goto("/topics")
    page.get_by_role("button", name="favourite orders").click()
    page.goto("/")
    expect(page.locator("favourite-topics a")).to_have_text("orders")


def test_group_is_reset_by_a_plan_and_undone(page: Page, served: Served) -> None:
    before = served.client.offsets_of("billing")
    page.goto("/groups/billing")
    page.locator("select[name=kind]").select_option("end")
    page.get_by_role("button", name="Plan a reset").click()
    expect(page.locator("output tbody tr")).to_have_count(2)
    assert served.client.offsets_of("billing") == before
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_text("Applied.")).to_be_visible()
    assert served.client.offsets_of("billing") == served.client.offsets("orders", "end")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Undone: the group is where it was.")).to_be_visible()
    assert served.client.offsets_of("billing") == before


def test_reset_to_what_is_no_place_says_so_and_changes_nothing(page: Page, served: Served) -> None:
    before = served.client.offsets_of("billing")
    page.goto("/groups/billing")
    page.locator("select[name=kind]").select_option("offset")
    page.get_by_label("Offset, time").fill("nowhere")
    page.get_by_role("button", name="Plan a reset").click()
    expect(page.get_by_role("alert")).to_contain_text("not an offset: 'nowhere'")
    assert served.client.offsets_of("billing") == before


def test_message_is_sent_by_the_form(page: Page, served: Served) -> None:
    page.goto("/topics/empty/messages")
    page.get_by_label("Value, as text").fill("<i>typed</i>")
    page.get_by_role("button", name="Send").click()
    page.locator("output a").click()
    expect(page.locator("pre")).to_have_text("<i>typed</i>")


def test_topic_is_followed_live_and_what_was_shown_stays_when_stopped(
    page: Page, served: Served
) -> None:
    page.goto("/topics/orders/messages?limit=20")
    page.get_by_role("button", name="Follow live").click()
    expect(page.get_by_text("Following.")).to_be_visible()
    for number in range(5):
        served.client.send("orders", f"burst <b>{number}</b>")
    for value in HOSTILE.values():
        served.client.send("orders", value)
    rows = page.locator("table.messages tbody tr")
    expect(rows).to_have_count(25 + len(HOSTILE))
    page.get_by_role("button", name="Stop following").click()
    served.client.send("orders", "too late")
    expect(page.get_by_text("Stopped; what was shown stays.")).to_be_visible()
    for number in range(5):
        expect(page.locator("main")).to_contain_text(f"burst <b>{number}</b>")
    expect(page.locator("main")).to_contain_text("\\u202egnp.exe\\u2066")
    expect(page.locator("main")).not_to_contain_text("too late")
    expect(rows).to_have_count(25 + len(HOSTILE))


def test_state_on_an_open_page_follows_the_cluster(page: Page, served: Served) -> None:
    served.site.sampler.look_at_health()
    page.clock.install()
    page.goto("/")
    state = page.locator("live-state")
    expect(state).to_contain_text("OK all partitions are led")
    page.evaluate("document.querySelector('live-state span').textContent = 'OLD'")
    page.clock.run_for(6000)
    expect(state).to_contain_text("OK all partitions are led")


def test_open_overview_when_a_broker_goes_then_state_counts_and_table_change_together(
    page: Page,
) -> None:
    with memory_cluster(2) as cluster, cluster.connect() as client, serve(client) as served:
        client.send("t", "x", partition="1-0")
        page.clock.install()
        page.goto(served.url)
        states = page.locator("td[data-label=State]")
        expect(states).to_contain_text(["running", "running"])
        expect(page.locator("dl.facts")).to_contain_text("2/2")
        cluster.brokers[1].close()
        wait_until(lambda: not client.brokers()[1].is_live, "its deregistration")
        served.site.sampler.look_at_health()

        page.clock.run_for(6000)

        expect(page.locator("live-state")).to_contain_text("FAIL brokers not there, offline")
        expect(page.locator("dl.facts")).to_contain_text("1/2")
        expect(states).to_contain_text(["running", "down"])
        expect(page.get_by_text("offline: t[1-0]")).to_be_visible()
        page.goto("about:blank")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(browser: Browser, served: Served, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python", reason="axe is not installed")
    script = (Path(axe.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
    context = browser.new_context(
        base_url=served.url, color_scheme="dark" if scheme == "dark" else "light"
    )
    page = context.new_page()
    for path in ("/", "/topics", "/topics/orders", "/topics/hostile/messages", "/groups/billing"):
        page.goto(path)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        page.evaluate(script)
        found = page.evaluate("axe.run().then(({violations}) => violations.map(one => one.help))")
        assert found == [], path
    context.close()
