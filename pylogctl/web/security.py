"""Guards the application: who may ask, from where, for how much; and headers for browsers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pylogctl.web.problems import REGISTRY_MEDIA_TYPE, ProblemError

MAX_HEAD_BYTES = 8 << 10
MAX_BODY_BYTES = 1 << 20
CSRF_HEADER = "X-CSRF-Token"
COOKIE = "pylogctl_session"
_COOKIE_OPTIONS = "; Path=/; HttpOnly; SameSite=Strict"
_FAILURES_PER_MINUTE = 5
_MAX_ADDRESSES = 10_000  # whose failures are remembered
_SAFE = "/?&=%+~:@!$'()*,"  # in a Refresh header
_JSON = ("application/json", REGISTRY_MEDIA_TYPE, "application/vnd.schemaregistry+json")
_SESSION = re.compile(r"[0-9A-Za-z_-]{43}")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": (
        "camera=(), display-capture=(), fullscreen=(), geolocation=(), microphone=(), payment=(), "
        "usb=()"
    ),
}
"""On every response, and `Cache-Control: no-store`, unless it has its own."""


class TokenAuthentication:
    """One token for all: as a bearer's, as the password that a browser asks for, or in a link."""

    def __init__(self, token: str) -> None:
        self._digest = hashlib.sha256(token.encode()).digest()

    def __call__(self, headers: Headers) -> str | None:
        """Return the user, which a browser asks for beside the password, if the token is right."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        user = "token"
        if scheme.lower() == "basic":
            try:
                user, _, given = base64.b64decode(given, validate=True).decode().partition(":")
            except ValueError:
                return None
        elif scheme.lower() != "bearer":
            return None
        return (user or "token") if self.is_right(given.strip()) else None

    def is_right(self, token: str) -> bool:
        """Return whether it is the token."""
        digest = hashlib.sha256(token.encode()).digest()
        return hmac.compare_digest(digest, self._digest)


@dataclass(eq=False)
class Guard:
    """ASGI middleware around the whole application.

    Attributes:
        app: what is guarded.
        respond_error: returns the response to a request that is refused.
        hosts: the values of `Host` that are this server, in lower case.
        authenticate: None if everybody may ask.
        clock: seconds.
    """

    app: ASGIApp
    respond_error: Callable[[Request, ProblemError], ASGIApp]
    hosts: Collection[str]
    authenticate: TokenAuthentication | None = None
    clock: Callable[[], float] = time.monotonic
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _failures: dict[str, list[float]] = field(default_factory=dict)  # times, by address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or refuse it."""
        if scope["type"] != "http":
            return
        request = Request(scope)
        state = scope.setdefault("state", {})
        state |= {"request_id": secrets.token_hex(8), "user": "anonymous"}
        session = _session_of(request)
        new_session = None if session else secrets.token_urlsafe(32)
        state["session"] = session or new_session
        state["csrf_token"] = self._csrf_token(state["session"])
        state["has_session"] = session is not None
        state["logs_in"] = False

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in (*HEADERS.items(), ("Cache-Control", "no-store")):
                    headers.setdefault(name, value)
                logs_in = state["logs_in"]
                is_page = headers.get("content-type", "").startswith("text/html")
                if new_session and (is_page or logs_in):
                    headers.append("Set-Cookie", f"{COOKIE}={new_session}{_COOKIE_OPTIONS}")
                if logs_in:
                    cookie = f"{_login_name(request)}={self._login(state['session'])}"
                    headers.append("Set-Cookie", f"{cookie}{_COOKIE_OPTIONS}")
            await send(message)

        app = self.app
        try:
            self._check(request)
            if state["logs_in"]:  # the token is not to stay in the address
                query = request.url.remove_query_params("token").query
                path = "/" + request.url.path.lstrip("/")  # and not //of.another.host
                address = f"{path}?{query}" if query else path
                if _is_foreign(request):  # a redirection would come without the cookies
                    refresh = {"Refresh": f"0;url={quote(address, safe=_SAFE)}"}
                    app = Response(headers=refresh, media_type="text/html")
                else:
                    app = RedirectResponse(address, 303)
        except ProblemError as error:
            app = self.respond_error(request, error)
        await app(scope, _limited(receive), send_guarded)

    def _check(self, request: Request) -> None:
        """Raise the problem of a request that is refused."""
        headers = request.headers
        head_bytes = len(request.url.path) + len(request.url.query)
        head_bytes += sum(len(name) + len(value) + 4 for name, value in headers.raw)
        if head_bytes > MAX_HEAD_BYTES:
            raise ProblemError(431, f"the request's head is larger than {MAX_HEAD_BYTES} bytes")
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            raise ProblemError(
                421,
                f"this server is not {' and '.join(map(repr, hosts)) or 'without a name'}",
                hints=("--public-host tells it a name by which browsers reach it",),
            )
        length = headers.get("content-length", "0")
        if length.isdecimal() and int(length) > MAX_BODY_BYTES:
            raise _too_large()
        if _is_foreign(request):
            # a link on a foreign page may open a page here, and nothing else
            is_visit = headers.get("sec-fetch-mode") == "navigate" and request.method == "GET"
            if not is_visit or headers.get("sec-fetch-dest", "document") != "document":
                raise ProblemError(403, "pages of other sites have no access")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != hosts[0].lower():
            raise ProblemError(403, f"pages of {origin!r} have no access")
        self._check_user(request)

    def _check_user(self, request: Request) -> None:
        if self.authenticate is None:
            return
        link_token = _link_token(request)
        if link_token and self.authenticate.is_right(link_token):
            request.state.logs_in, request.state.user = True, "token"
            return
        cookie = request.cookies.get(_login_name(request), "")
        if hmac.compare_digest(cookie.encode(), self._login(request.state.session).encode()):
            request.state.user = "token"
            return
        if (user := self.authenticate(request.headers)) is not None:
            request.state.user = user
            return
        address = request.client.host if request.client else ""
        now_s = self.clock()
        failures = [one for one in self._failures.pop(address, ()) if now_s - one < 60]
        is_limited = len(failures) >= _FAILURES_PER_MINUTE
        is_wrong = "authorization" in request.headers
        # the link of another page does not count: anybody can make a user open one
        is_wrong |= bool(link_token) and not _is_foreign(request)
        if is_wrong and not is_limited:
            failures.append(now_s)
        if failures:
            self._failures[address] = failures
            while len(self._failures) > _MAX_ADDRESSES:
                del self._failures[next(iter(self._failures))]
        if is_wrong and is_limited:
            raise ProblemError(429, "too many wrong tokens", retry_after_s=60)
        raise ProblemError(
            401,
            "give the token of this server",
            hints=(
                "Authorization: Bearer TOKEN; in a browser, open the link that the server "
                "printed, or give the token as the password",
            ),
            headers={"WWW-Authenticate": 'Basic realm="pylogctl", charset="UTF-8"'},
        )

    def _csrf_token(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def _login(self, session: str) -> str:
        """Return what proves that a browser's session has given the token."""
        return hmac.new(self._secret, b"login " + session.encode(), hashlib.sha256).hexdigest()


def check_change(request: Request) -> None:
    """Raise the problem of a request that changes something, unless it is for its user.

    A program acts for nobody but itself; in a browser only pages of this server may.
    """
    headers = request.headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if kind not in _JSON and (has_body or kind or request.method != "DELETE"):
        raise ProblemError(415, "the body has to be application/json")
    if not any(name in headers for name in ("origin", "sec-fetch-site", "cookie")):
        return
    if headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise ProblemError(403, "only pages of this server may change something")
    given, wanted = headers.get(CSRF_HEADER, ""), request.state.csrf_token
    if not request.state.has_session or not hmac.compare_digest(given.encode(), wanted.encode()):
        raise ProblemError(
            403,
            f"{CSRF_HEADER} is missing, or of another session",
            code="CSRF",
            hints=("load the page again",),
        )


def _login_name(request: Request) -> str:
    """Return the name of the cookie of a login: cookies are shared by the ports of a host."""
    return f"pylogctl_login_{request.headers.get('host', '').rpartition(':')[2]}"


def _link_token(request: Request) -> str:
    """Return the token in the address of a page, which a user opens; empty if none is."""
    if request.method != "GET" or request.url.path.startswith("/api/"):
        return ""
    return request.query_params.get("token", "")


def _is_foreign(request: Request) -> bool:
    """Return whether a page of another site made the browser ask."""
    return request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def _session_of(request: Request) -> str | None:
    try:
        cookies = SimpleCookie(request.headers.get("cookie", ""))
    except CookieError:
        return None
    value = cookies[COOKIE].value if COOKIE in cookies else ""
    return value if _SESSION.fullmatch(value) else None


def _limited(receive: Receive) -> Receive:
    """Return what receives a body, as long as it is not too large."""
    taken = 0

    async def receive_limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > MAX_BODY_BYTES:
            raise _too_large()
        return message

    return receive_limited


def _too_large() -> ProblemError:
    return ProblemError(413, f"the body is larger than {MAX_BODY_BYTES} bytes")
