"""The guard of the page: the token, host and origin of requests, and the headers of responses.

Web pages of other sites can send requests to 127.0.0.1. The guard refuses requests without the token, which
other sites do not have; requests whose `Host` is another name, as after DNS rebinding; and changes from
another origin, with which a browser may send the cookie of the page.
"""

from __future__ import annotations

import hmac

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class Guard:
    """Refuses requests that do not come from the page, and adds headers to all responses.

    Args:
        token: The secret of the URL and of the cookie.
        port: The port of the server, for the names that `Host` may have.
    """

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token.encode()
        # A browser sends the cookies of one port to all ports of a host.
        self.cookie = f"threadmem_{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        token = connection.query_params.get("token", "")
        by_url = scope["type"] == "http" and scope["path"] == "/" and self._is_token(token)
        reason = self._refusal(connection, by_url)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if by_url and reason is None:
                    headers.append(
                        "Set-Cookie",
                        f"{self.cookie}={self._token.decode()}; HttpOnly; SameSite=Strict; Path=/",
                    )
            await send(message)

        if reason is None:
            await self._app(scope, receive, guarded)
        elif scope["type"] == "http":
            await PlainTextResponse(f"{reason}\n", 403)(scope, receive, guarded)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, connection: HTTPConnection, by_url: bool) -> str | None:
        """The reason to refuse a request, or `None`."""
        scope, headers = connection.scope, connection.headers
        host = headers.get("host", "")
        if scope["type"] != "http" or host not in self._hosts:
            return "The host is not 127.0.0.1 or localhost. Open the URL that `threadmem view` has printed."
        if not (by_url or self._is_token(connection.cookies.get(self.cookie, ""))):
            return "Open the URL that `threadmem view` has printed; it contains the token of the page."
        if scope["method"] not in ("GET", "HEAD") and headers.get("origin") != f"http://{host}":
            return "Changes from another origin are refused. Open the URL that `threadmem view` has printed."
        return None

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "replace"), self._token)
