"""What every request must pass: method, Host, token. What every answer carries: headers.

A page of another site must not reach the monitor through a reader's browser: the Host header
is checked against rebound names, no answer allows another origin, and nothing changes state.
"""

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "async_rollout_monitor"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' {styles}; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Wraps the application.

    `hosts` are the names it answers to, whatever the port; `styles` the hashes of style sheets
    that a script of ours may put into the page.
    """

    def __init__(self, app: ASGIApp, hosts: frozenset[str], token: str | None, styles: list[str]):
        self._app = app
        self._hosts = hosts
        self._token = token
        self._headers = _HEADERS | {"Content-Security-Policy": _POLICY.format(styles=" ".join(styles))}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-cache" if "etag" in headers else "no-store")
            await send(message)

        answer = self._refusal(scope) if scope["type"] == "http" else PlainTextResponse("", 400)
        await (answer or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("read only: GET\n", 405, {"Allow": "GET, HEAD"})
        if host_name(headers.get("host", "")) not in self._hosts:
            names = ", ".join(sorted(self._hosts))
            return PlainTextResponse(f"unknown Host; this monitor answers to {names}\n", 400)
        return self._without_token(scope, headers) if self._token else None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """None if the request shows the token; a link that holds it is traded for a cookie."""
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if self._is_token(bearer if scheme.lower() == "bearer" else _cookie(headers)):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if self._is_token(dict(query).get("token", "")):
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            answer = RedirectResponse("?" + rest, 303)
            answer.set_cookie(COOKIE, self._token, httponly=True, samesite="lax")
            return answer
        return PlainTextResponse(
            "a token is needed: open /?token=TOKEN, or send Authorization: Bearer TOKEN\n", 401
        )

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(), self._token.encode())


def host_name(header: str) -> str:
    """The name in a Host header, without its port and in lower case."""
    if header.startswith("["):
        return header.partition("]")[0].lower() + "]"
    return header.partition(":")[0].lower()


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""
