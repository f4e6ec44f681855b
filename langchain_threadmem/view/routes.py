"""The application of the page: its files, its reads and its changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.errors import InputError, NotFoundError, StorageBusyError, ThreadMemError
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.view.contents import Contents
from langchain_threadmem.view.guard import Guard

FILES = Path(__file__).parent / "static"
LARGEST = 1_000_000
"""The largest body of a request, in bytes."""
Verb = Callable[["Arguments", MemorySystem], Any]


class Arguments:
    """The arguments of a request, checked as they are read."""

    def __init__(self, values: Any) -> None:
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        """A text."""
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise InputError(f"{name}={value!r:.80} is not text")
        return value

    def number(self, name: str) -> int:
        """An integer."""
        value = self._values.get(name)
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name}={value!r:.80} is not a number") from error

    def number_or_none(self, name: str) -> int | None:
        """An integer, or `None` for null."""
        return None if self._values.get(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """Whether a value is true, or "1"."""
        return self._values.get(name) in (True, "1")


class Writer:
    """The system that changes the memory, which the first change opens."""

    def __init__(self, opening: Callable[[], MemorySystem] | None) -> None:
        self._opening = opening
        self._system: MemorySystem | None = None
        self._lock = Lock()

    @property
    def is_allowed(self) -> bool:
        """Whether the page may change the memory."""
        return self._opening is not None

    def open(self) -> MemorySystem:
        """The system.

        Raises:
            InputError: The page may not change the memory.
        """
        if self._opening is None:
            raise InputError("the page was opened with --read-only and changes nothing")
        with self._lock:
            if self._system is None:
                self._system = self._opening()
            return self._system

    def close(self) -> None:
        """Close the system, if it is open."""
        if self._system is not None:
            self._system.close()


def app_of(contents: Contents, writer: Writer, token: str, port: int) -> Starlette:
    """The application.

    Args:
        contents: The contents of the page.
        writer: The system for changes.
        token: The secret of the page.
        port: The port of the server.
    """

    async def page(request: Request) -> Response:
        return FileResponse(FILES / "page.html", media_type="text/html; charset=utf-8")

    def reading(read: Callable[[Arguments], Any]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            return await _answer(lambda: read(Arguments(request.query_params)))

        return answer

    def writing(change: Verb) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            body = await _body(request)

            def work() -> Any:
                given = _arguments(body)
                contents.check(given.text("conversation"))
                return change(given, writer.open())

            return await _answer(work)

        return answer

    reads: dict[str, Callable[[Arguments], Any]] = {
        "about": lambda given: {"owner": contents.system.owner, "writes": writer.is_allowed},
        "version": lambda given: contents.version(given.text("conversation", "")),
        "conversations": lambda given: contents.conversations(
            given.text("query", ""), "both" if given.flag("archived") else False, given.text("cursor", "")
        ),
        "tree": lambda given: contents.tree(given.text("conversation"), replaced=given.flag("replaced")),
        "lines": lambda given: contents.lines(given.text("conversation"), _numbers(given.text("ids"))),
        "node": lambda given: contents.node(
            given.text("conversation"), given.number("id"), whole=given.flag("whole")
        ),
        "doubtful": lambda given: contents.doubtful(given.text("conversation")),
        "recall": lambda given: contents.recall(
            given.text("conversation"),
            given.text("query"),
            "owner" if given.flag("everywhere") else "conversation",
        ),
        "summary": lambda given: contents.summary(given.text("conversation")),
        "unfold": lambda given: contents.unfold(given.text("id"), given.text("group"), given.number("rank")),
    }
    writes: dict[str, Verb] = {
        "place": _place,
        "revise": _revise,
        "switch": lambda given, system: {"id": _memory(given, system).switch(given.number("id")).id},
        "rename_thread": lambda given, system: {
            "title": _memory(given, system).rename_thread(given.number("id"), given.text("title"))
        },
        "rename": lambda given, system: {
            "title": system.update_conversation(given.text("conversation"), title=given.text("title")).title
        },
        "archive": lambda given, system: {
            "archived": system.update_conversation(
                given.text("conversation"), archived=given.flag("archived")
            ).archived
            is not None
        },
    }
    return Starlette(
        routes=[
            Route("/", page),
            *(Route(f"/api/{name}", reading(read)) for name, read in reads.items()),
            *(Route(f"/api/{name}", writing(change), methods=["POST"]) for name, change in writes.items()),
            Mount("/static", StaticFiles(directory=FILES)),
        ],
        middleware=[Middleware(Guard, token=token, port=port)],
    )


def _memory(given: Arguments, system: MemorySystem) -> ChatMemory:
    return system.conversation(given.text("conversation"))


def _place(given: Arguments, system: MemorySystem) -> dict[str, Any]:
    memory, node_id = _memory(given, system), given.number("id")
    before = memory.thread(node_id)[-1].parent_id
    return {"id": memory.place(node_id, given.number_or_none("parent")).id, "before": before}


def _revise(given: Arguments, system: MemorySystem) -> dict[str, Any]:
    memory, node_id, text = _memory(given, system), given.number("id"), given.text("text")
    if not text.strip():
        raise InputError("the text is empty; write the new version")
    if memory.thread(node_id)[-1].message.type == "ai":
        return {"id": memory.regenerate(node_id, text)[-1].id}
    return {"id": memory.edit(node_id, text).id}


def _numbers(text: str) -> list[int]:
    # `int` refuses thousands of digits; no node has a number of 20 digits.
    return [int(number) for number in text.split(",")[:500] if number.isdecimal() and len(number) < 20]


async def _body(request: Request) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            break
    return body


def _arguments(body: bytes) -> Arguments:
    if len(body) > LARGEST:
        raise InputError(f"the request is longer than {LARGEST:,} bytes")
    try:
        values = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InputError(f"the request is not JSON: {error}") from error
    if not isinstance(values, dict):
        raise InputError("the request is not a JSON object")
    return Arguments(values)


async def _answer(work: Callable[[], Any]) -> Response:
    """The result as JSON; errors of the package as JSON with a status."""
    try:
        return JSONResponse(await run_in_threadpool(work))
    except ThreadMemError as error:
        status = (
            404 if isinstance(error, NotFoundError) else 503 if isinstance(error, StorageBusyError) else 400
        )
        return JSONResponse({"error": str(error)}, status)
