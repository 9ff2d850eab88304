"""What the guard of the web server lets through, and what stands on every response."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from typing import Any, NamedTuple, cast

import pytest
from starlette.types import ASGIApp

from pylogctl import Client
from pylogctl.web.app import ROUTES, make_app
from pylogctl.web.security import HEADERS, MAX_BODY_BYTES, TokenAuthentication
from pylogctl.web.site import Site

HOST = "127.0.0.1:8080"
LIVE = "/api/v1/health/live"
TOKEN = "a token of some length"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


def ask(
    app: ASGIApp,
    path: str = LIVE,
    headers: tuple[tuple[str, str], ...] = (("host", HOST),),
    *,
    method: str = "GET",
    chunks: tuple[bytes, ...] = (b"",),
    address: str = "127.0.0.1",
) -> Answer:
    """Return the response to a request, whose body comes in chunks."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "client": (address, 1234),
        "server": ("127.0.0.1", 8080),
    }
    left = list(chunks)
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(asyncio.wait_for(_call(app, scope, receive, send), 60))
    found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return Answer(sent[0]["status"], found, b"".join(one.get("body", b"") for one in sent))


async def _call(app: ASGIApp, scope: Any, receive: Any, send: Any) -> None:
    await app(scope, receive, send)


@pytest.fixture
def app() -> ASGIApp:
    """The application over a client that nothing asks here."""
    return make_app(Site(cast(Client, None)), {HOST, "localhost:8080", "[::1]:8080"})


@pytest.fixture
def guarded() -> ASGIApp:
    return make_app(Site(cast(Client, None)), {HOST}, TokenAuthentication(TOKEN))


def test_host_when_it_is_of_this_server_then_it_is_served(app: ASGIApp) -> None:
    for host in (HOST, "LOCALHOST:8080", "[::1]:8080"):
        assert ask(app, headers=(("host", host),)).status == 200, host


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("",),
        ("evil.test",),
        ("evil.test:8080",),
        ("127.0.0.1.evil.test:8080",),
        ("127.0.0.1",),
        ("127.0.0.1:8081",),
        ("127.0.0.1.:8080",),
        ("localhost.:8080",),
        ("[::2]:8080",),
        ("::1",),
        ("0:8080",),
        (HOST, HOST),
        (HOST, "evil.test"),
    ],
)
@pytest.mark.parametrize("path", [LIVE, "/", "/api/v1/events", "/api/v1/topics/t/messages/live"])
def test_host_when_it_is_another_one_then_it_is_refused(
    app: ASGIApp, hosts: tuple[str, ...], path: str
) -> None:
    answer = ask(app, path, tuple(("host", one) for one in hosts))
    assert answer.status == 421
    assert b"Traceback" not in answer.body


def test_headers_when_any_route_or_error_responds_then_they_are_all_there(app: ASGIApp) -> None:
    requests = [(re.sub(r"\{\w+(:int)?\}", "0", one.path), one.method) for one in ROUTES]
    requests += [("/absent", "GET"), ("/api/v1/absent", "GET"), (LIVE, "PUT"), (LIVE, "TRACE")]
    statuses = set()
    for path, method in requests:
        for host in (HOST, "evil.test"):
            for accept in ("text/html", "application/json"):
                headers = (("host", host), ("accept", accept), ("content-type", "application/json"))
                answer = ask(app, path, headers, method="HEAD" if method == "GET" else method)
                statuses.add(answer.status)
                for name, value in HEADERS.items():
                    found = answer.headers[name.lower()]
                    assert found == value or found.startswith("sandbox"), (path, name)
                assert "cache-control" in answer.headers, path
                assert not [one for one in answer.headers if one.startswith("access-control")]
                assert "server" not in answer.headers
    assert {200, 403, 404, 405, 421, 500} <= statuses


def test_asset_when_it_is_not_modified_then_the_headers_are_there_too(app: ASGIApp) -> None:
    page = ask(app, "/absent", (("host", HOST), ("accept", "text/html")))
    path = re.search(rb'"(/assets/[^"]+)"', page.body)
    assert path is not None
    first = ask(app, path[1].decode())
    assert first.status == 200
    assert "immutable" in first.headers["cache-control"]
    if etag := first.headers.get("etag"):
        again = ask(app, path[1].decode(), (("host", HOST), ("if-none-match", etag)))
        assert again.status == 304
        assert again.headers["x-content-type-options"] == "nosniff"


def test_error_when_a_browser_asks_then_it_is_a_page_else_a_problem(app: ASGIApp) -> None:
    path = "/<script>alert(1)</script>"
    page = ask(app, path, (("host", HOST), ("accept", "text/html")))
    assert page.headers["content-type"].startswith("text/html")
    assert b"<script>alert" not in page.body
    for headers, where in ((("accept", "text/html"), f"/api/v1{path}"), (("accept", "*/*"), path)):
        answer = ask(app, where, (("host", HOST), headers))
        assert answer.headers["content-type"] == "application/problem+json"
        problem = json.loads(answer.body)
        assert (problem["status"], problem["code"]) == (404, "NOT_FOUND")
        assert problem["instance"]


def test_method_when_it_is_not_possible_then_allow_tells_those_that_are(app: ASGIApp) -> None:
    answer = ask(app, LIVE, (("host", HOST), ("content-type", "application/json")), method="POST")
    assert answer.status == 405
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}


def test_foreign_page_when_it_asks_then_it_gets_nothing_but_a_visit(app: ASGIApp) -> None:
    host = ("host", HOST)
    for headers in (
        (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")),
        (("sec-fetch-site", "same-site"), ("sec-fetch-mode", "cors")),
        (
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe"),
        ),
        (("origin", "http://evil.test"),),
        (("origin", "null"),),
    ):
        assert ask(app, headers=(host, *headers)).status == 403, headers
    visit = (
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-dest", "document"),
    )
    assert ask(app, headers=(host, *visit)).status == 200


def test_head_when_it_is_too_large_then_431(app: ASGIApp) -> None:
    assert ask(app, headers=(("host", HOST), ("x", "y" * 9000))).status == 431
    assert ask(app, f"{LIVE}?{'y' * 9000}").status == 431


def test_body_when_it_is_too_large_then_413_also_without_a_length() -> None:
    app = make_app(Site(cast(Client, None), allow_changes=True), {HOST})
    headers = (("host", HOST), ("content-type", "application/json"))
    path = "/api/v1/topics"
    length = ("content-length", str(MAX_BODY_BYTES + 1))
    assert ask(app, path, (*headers, length), method="POST").status == 413
    chunks = (b'{"name": "', *[b"x" * 65536] * 17)
    chunked = ("transfer-encoding", "chunked")
    assert ask(app, path, (*headers, chunked), method="POST", chunks=chunks).status == 413


def test_body_when_it_is_wrong_then_a_pointer_says_where() -> None:
    app = make_app(Site(cast(Client, None), allow_changes=True), {HOST})
    headers = (("host", HOST), ("content-type", "application/json"))

    def post(body: object) -> tuple[int, dict[str, Any]]:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = ask(app, "/api/v1/topics", headers, method="POST", chunks=(data,))
        return answer.status, json.loads(answer.body)

    assert post(b"{")[0] == 400
    assert post(b"\xff")[0] == 400
    assert post([])[0] == 422
    status, problem = post({"name": "x", "partitions": "many"})
    assert (status, problem["errors"][0]["pointer"]) == (422, "/partitions")
    for name in ("host", "url", "type"):  # nothing here may name where to connect to
        assert post({"name": "x", name: "http://169.254.169.254/"})[0] == 422


def test_token_when_it_is_right_then_it_is_a_bearer_or_a_password(guarded: ASGIApp) -> None:
    basic = base64.b64encode(f"anna:{TOKEN}".encode()).decode()
    for given in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        headers = (("host", HOST), ("authorization", given))
        assert ask(guarded, headers=headers).status == 200, given
    answer = ask(guarded)
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith("Basic")
    assert ask(guarded, f"{LIVE}?token={TOKEN}").status == 401


def test_token_when_it_is_guessed_then_guesses_have_to_wait_and_the_owner_has_not(
    guarded: ASGIApp, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = (("host", HOST), ("authorization", f"Bearer {TOKEN}x"))
    right = (("host", HOST), ("authorization", f"Bearer {TOKEN}"))
    for given in ("Bearer", "Basic !", "Basic /w==", "Digest x"):
        other = (("host", HOST), ("authorization", given))
        assert ask(guarded, headers=other, address=f"10.0.0.{len(given)}").status == 401
    assert [ask(guarded, headers=wrong).status for _ in range(5)] == [401] * 5
    answer = ask(guarded, headers=wrong)
    assert answer.status == 429
    assert answer.headers["retry-after"] == "60"
    assert ask(guarded, headers=right).status == 200
    assert ask(guarded, f"/?token={TOKEN.replace(' ', '+')}").status == 303
    assert ask(guarded).status == 401  # a browser asks for it
    assert ask(guarded, headers=wrong, address="10.0.0.1").status == 401
    assert TOKEN not in caplog.text


def test_link_when_its_token_is_right_then_logs_this_browser_in_and_leaves_the_address(
    guarded: ASGIApp,
) -> None:
    answer = ask(guarded, f"//evil.test/x?a=1&token={TOKEN.replace(' ', '+')}")
    assert (answer.status, answer.headers["location"]) == (303, "/evil.test/x?a=1")
    login = answer.headers["set-cookie"].partition(";")[0]  # the last one
    assert login.startswith("pylogctl_login_8080=")
    assert "HttpOnly; SameSite=Strict" in answer.headers["set-cookie"]
    session = f"pylogctl_session={'s' * 43}"
    link = f"/?token={TOKEN.replace(' ', '+')}"
    again = ask(guarded, link, headers=(("host", HOST), ("cookie", session)))
    both = again.headers["set-cookie"].partition(";")[0] + f"; {session}"
    logged_in = (("host", HOST), ("cookie", both))
    assert ask(guarded, headers=logged_in).status == 200
    assert ask(guarded, link, headers=logged_in).headers["location"] == "/"
    # without its session the login proves nothing, nor does one that is made up
    for cookie in (login, "pylogctl_login_8080=", f"{login}; pylogctl_session={'a' * 43}"):
        assert ask(guarded, headers=(("host", HOST), ("cookie", cookie))).status == 401


def test_link_when_opened_from_a_page_of_another_site_then_logs_in_and_goes_on(
    guarded: ASGIApp,
) -> None:
    link = f"/x?a=1&token={TOKEN.replace(' ', '+')}"
    foreign = (("host", HOST), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    answer = ask(guarded, link, headers=(*foreign, ("sec-fetch-dest", "document")))
    assert (answer.status, answer.headers["refresh"]) == (200, "0;url=/x?a=1")
    assert "pylogctl_login_8080=" in answer.headers["set-cookie"]
    assert ask(guarded, link, headers=(*foreign, ("sec-fetch-dest", "iframe"))).status == 403


def test_link_when_a_foreign_page_opens_it_with_wrong_tokens_then_nobody_has_to_wait(
    guarded: ASGIApp,
) -> None:
    foreign = (("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate"))
    for _ in range(9):
        headers = (("host", HOST), *foreign, ("sec-fetch-dest", "document"))
        assert ask(guarded, "/?token=wrong", headers=headers).status == 401
    right = (("host", HOST), ("authorization", f"Bearer {TOKEN}"))
    assert ask(guarded, headers=right).status == 200
    assert [ask(guarded, "/?token=wrong").status for _ in range(6)] == [401] * 5 + [429]
