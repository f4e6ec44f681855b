"""A chat in the browser whose conversations are trees: `python examples/chat/app.py`."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

import uvicorn
from chats import Chat, Chats, Emit
from demo_model import DemoModel
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from langchain_threadmem import MemorySystem
from langchain_threadmem.errors import ThreadMemError
from langchain_threadmem.selection.selectors import AnySelector

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Guard:
    """Middleware that refuses writes from other sites, and limits the page to resources of the app."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        app = self.app
        if scope["type"] == "http" and scope["method"] not in ("GET", "HEAD"):
            headers = Headers(scope=scope)
            if urlsplit(headers.get("origin", "")).netloc != headers.get("host"):
                app = PlainTextResponse("the request comes from another site", 403)
        await app(scope, receive, send_with_headers)


class SignedCookie:
    """A signed cookie with the name of a user, which only the server can write."""

    NAME = "user"

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def value(self, name: str) -> str:
        return f"{quote(name, safe='')}.{hmac.new(self._secret, name.encode(), hashlib.sha256).hexdigest()}"

    def user(self, request: Request) -> str:
        """The user of a request; 401 if there is none."""
        value = request.cookies.get(self.NAME, "")
        name = unquote(value.rpartition(".")[0])
        if not name or not hmac.compare_digest(value.encode(), self.value(name).encode()):
            raise HTTPException(401, "no user is signed in")
        return name


class Body(BaseModel):
    """The JSON body of a request."""

    name: str = Field("", max_length=40)
    text: str = Field("", max_length=20_000)
    node: int = 0
    parent: int | None = None


async def body_of(request: Request, with_text: bool = False) -> Body:
    """The body of a request; 400 if a value is invalid, or the text is missing."""
    try:
        body = Body.model_validate_json(await request.body())
    except ValidationError as error:
        raise HTTPException(400, str(error)) from error
    if with_text and not body.text.strip():
        raise HTTPException(400, "the text is empty")
    return body


def create_app(
    system: MemorySystem,
    model: BaseChatModel,
    *,
    selector: AnySelector | None = None,
    secret: str | None = None,
    hosts: Sequence[str] = ("127.0.0.1", "localhost"),
) -> Starlette:
    """The app.

    Args:
        system: The memory of all users, which the app closes at its end.
        model: The chat model.
        selector: Selects the threads; by default `SemanticNodeSelector`.
        secret: The key that signs cookies; by default a new key, so that a restart signs all users out.
        hosts: The names under which browsers may reach the app.
    """
    chats, cookie = Chats(system, model, selector), SignedCookie(secret or secrets.token_hex())

    def chat_of(request: Request) -> Chat:
        return chats.chat(cookie.user(request), request.path_params["conversation"])

    async def state_of(chat: Chat, everything: bool = False) -> Response:
        return JSONResponse(await run_in_threadpool(chat.state, everything))

    def streamed(chat: Chat, work: Callable[[Emit], Awaitable[None]]) -> Response:
        if chat.key in chats.running:
            raise HTTPException(409, "an answer is being written in this conversation")
        return StreamingResponse(chat.stream(work), media_type="text/event-stream")

    async def sign_in(request: Request) -> Response:
        name = (await body_of(request)).name.strip()
        if not (name and name.isprintable()):
            raise HTTPException(400, "pass a name")
        response = JSONResponse({"user": name})
        response.set_cookie(cookie.NAME, cookie.value(name), httponly=True, samesite="strict")
        return response

    async def sign_out(request: Request) -> Response:
        response = JSONResponse({})
        response.delete_cookie(cookie.NAME, httponly=True, samesite="strict")
        return response

    async def conversations(request: Request) -> Response:
        user = cookie.user(request)
        return JSONResponse({"user": user, "conversations": await run_in_threadpool(chats.listed, user)})

    async def state(request: Request) -> Response:
        return await state_of(chat_of(request), "everything" in request.query_params)

    async def send(request: Request) -> Response:
        chat, body = chat_of(request), await body_of(request, with_text=True)
        return streamed(chat, lambda emit: chat.send(body.text, emit))

    async def edit(request: Request) -> Response:
        chat, body = chat_of(request), await body_of(request, with_text=True)
        return streamed(chat, lambda emit: chat.edit(body.node, body.text, emit))

    async def regenerate(request: Request) -> Response:
        chat, body = chat_of(request), await body_of(request)
        return streamed(chat, lambda emit: chat.regenerate(body.node, emit))

    async def stop(request: Request) -> Response:
        chat_of(request).stop()
        return JSONResponse({})

    async def switch(request: Request) -> Response:
        chat, body = chat_of(request), await body_of(request)
        await chat.memory.aswitch(body.node)
        return await state_of(chat)

    async def version(request: Request) -> Response:
        chat, body = chat_of(request), await body_of(request)
        await chat.memory.aswitch(body.node, revive=True)
        return await state_of(chat)

    async def place(request: Request) -> Response:
        chat, body = chat_of(request), await body_of(request)
        await chat.place(body.node, body.parent)
        return await state_of(chat)

    async def refused(request: Request, error: Exception) -> Response:
        return PlainTextResponse(str(error.args[0] if error.args else error), 400)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with system:
            yield

    one = "/api/conversations/{conversation}"
    verbs = (send, edit, regenerate, stop, switch, version, place)
    return Starlette(
        routes=[
            Route("/api/sign_in", sign_in, methods=["POST"]),
            Route("/api/sign_out", sign_out, methods=["POST"]),
            Route("/api/conversations", conversations),
            Route(one, state),
            *(Route(f"{one}/{verb.__name__}", verb, methods=["POST"]) for verb in verbs),
            Mount("/", StaticFiles(directory=Path(__file__).with_name("page"), html=True)),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts)), Middleware(Guard)],
        exception_handlers={ThreadMemError: refused},
        lifespan=lifespan,
    )


def main() -> None:
    """Start the app with the settings of the environment."""
    model: BaseChatModel = DemoModel()
    if "OPENAI_API_KEY" in os.environ or "OPENAI_BASE_URL" in os.environ:
        from langchain_openai import ChatOpenAI

        os.environ.setdefault("OPENAI_API_KEY", "none")  # Many local servers need no key.
        model = ChatOpenAI(model=os.environ.get("OPENAI_MODEL", "gpt-4o-mini"))
    app = create_app(
        MemorySystem(os.environ.get("MEMORY_URL", "sqlite:///chat.db")),
        model,
        secret=os.environ.get("CHAT_SECRET"),
    )
    port = int(os.environ.get("PORT", "8000"))
    print(f"http://127.0.0.1:{port}")
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", timeout_graceful_shutdown=3)


if __name__ == "__main__":
    main()
