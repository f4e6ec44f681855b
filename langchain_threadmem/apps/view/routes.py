"""The web application of the page: files, reads and changes."""

from __future__ import annotations

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

from langchain_threadmem.apps.view.contents import Contents
from langchain_threadmem.apps.view.guard import Guard
from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.errors import InputError, NotFoundError, StorageBusyError, ThreadMemError
from langchain_threadmem.formats.exporters.page_words import WORDS
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.records import as_object, loads

FILES = Path(__file__).parent / "static"
LARGEST = 1_000_000
"""The maximum length of the body of a request, in bytes."""
Change = Callable[["Arguments", MemorySystem], Any]


class Arguments:
    """The arguments of a request; a method that reads an argument checks it.

    Raises:
        InputError: An argument is missing or has another type.
    """

    def __init__(self, values: Any) -> None:
        self._values = values

    def text(self, name: str, default: str | None = None) -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise InputError(f"{name}={value!r:.80} is not text")
        return value

    def number(self, name: str) -> int:
        value = self._values.get(name)
        try:
            return int(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"{name}={value!r:.80} is not a number") from error

    def number_or_none(self, name: str) -> int | None:
        """An integer, or `None` for null."""
        return None if self._values.get(name) is None else self.number(name)

    def flag(self, name: str) -> bool:
        """A Boolean: `True` or "1"; any other value is false."""
        return self._values.get(name) in (True, "1")


class WritableSystem:
    """The system that changes the memory; the first change opens it.

    Args:
        open_system: Opens the system; `None` for a page without changes.
    """

    def __init__(self, open_system: Callable[[], MemorySystem] | None) -> None:
        self._open_system = open_system
        self._system: MemorySystem | None = None
        self._lock = Lock()

    @property
    def is_allowed(self) -> bool:
        """Whether the page may change the memory."""
        return self._open_system is not None

    def open(self) -> MemorySystem:
        """Open the system, or return the open system.

        Raises:
            InputError: The page may not change the memory.
        """
        if self._open_system is None:
            raise InputError("the page was opened with --read-only and cannot change the memory")
        with self._lock:
            if self._system is None:
                self._system = self._open_system()
            return self._system

    def close(self) -> None:
        """Close the system, if it is open."""
        if self._system is not None:
            self._system.close()


def app_of(contents: Contents, writer: WritableSystem, token: str, port: int) -> Starlette:
    """The web application."""

    async def page(request: Request) -> Response:
        return FileResponse(FILES / "page.html", media_type="text/html; charset=utf-8")

    def reading(read: Callable[[Arguments], Any]) -> Callable[[Request], Any]:
        async def respond(request: Request) -> Response:
            return await _response(lambda: read(Arguments(request.query_params)))

        return respond

    def writing(change: Change) -> Callable[[Request], Any]:
        async def respond(request: Request) -> Response:
            body = await _body(request)

            def work() -> Any:
                args = _arguments(body)
                contents.snapshots.check(args.text("conversation"))
                return change(args, writer.open())

            return await _response(work)

        return respond

    reads: dict[str, Callable[[Arguments], Any]] = {
        "about": lambda args: {"owner": contents.system.owner, "writes": writer.is_allowed},
        "words": lambda args: WORDS,
        "version": lambda args: contents.version(args.text("conversation", "")),
        "conversations": lambda args: contents.conversations(
            args.text("query", ""), "both" if args.flag("archived") else False, args.text("cursor", "")
        ),
        "tree": lambda args: contents.tree(args.text("conversation"), replaced=args.flag("replaced")),
        "lines": lambda args: contents.lines(args.text("conversation"), _numbers(args.text("ids"))),
        "node": lambda args: contents.node(
            args.text("conversation"), args.number("id"), whole=args.flag("whole")
        ),
        "doubtful": lambda args: contents.doubtful(args.text("conversation")),
        "recall": lambda args: contents.recall(
            args.text("conversation"),
            args.text("query"),
            "owner" if args.flag("everywhere") else "conversation",
        ),
        "summary": lambda args: contents.summary(args.text("conversation")),
        "unfold": lambda args: contents.unfold(args.text("id"), args.text("group"), args.number("rank")),
    }
    writes: dict[str, Change] = {
        "place": _place,
        "revise": _revise,
        "switch": lambda args, system: {"id": _memory(args, system).switch(args.number("id")).id},
        "rename_thread": lambda args, system: {
            "title": _memory(args, system).rename_thread(args.number("id"), args.text("title"))
        },
        "rename": lambda args, system: {
            "title": system.update_conversation(args.text("conversation"), title=args.text("title")).title
        },
        "archive": lambda args, system: {
            "archived": system.update_conversation(
                args.text("conversation"), archived=args.flag("archived")
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


def _memory(args: Arguments, system: MemorySystem) -> ChatMemory:
    return system.conversation(args.text("conversation"))


def _place(args: Arguments, system: MemorySystem) -> dict[str, Any]:
    memory, node_id = _memory(args, system), args.number("id")
    before = memory.thread(node_id)[-1].parent_id
    return {"id": memory.place(node_id, args.number_or_none("parent")).id, "before": before}


def _revise(args: Arguments, system: MemorySystem) -> dict[str, Any]:
    memory, node_id, text = _memory(args, system), args.number("id"), args.text("text")
    if not text.strip():
        raise InputError("the text is empty; enter the new version")
    if memory.thread(node_id)[-1].message.type == "ai":
        return {"id": memory.regenerate(node_id, text)[-1].id}
    return {"id": memory.edit(node_id, text).id}


def _numbers(text: str) -> list[int]:
    numbers = text.split(",")[:500]
    # `int` refuses thousands of digits; no node has a number of 20 digits.
    if not all(number.isdecimal() and len(number) < 20 for number in numbers):
        raise InputError(f"ids={text!r:.80} is not a list of node numbers")
    return list(map(int, numbers))


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
    return Arguments(as_object(loads(body, "the request"), "the request"))


async def _response(work: Callable[[], Any]) -> Response:
    """The result as JSON; for an error of the package, its text as JSON with a status code."""
    try:
        return JSONResponse(await run_in_threadpool(work))
    except ThreadMemError as error:
        status = (
            404 if isinstance(error, NotFoundError) else 503 if isinstance(error, StorageBusyError) else 400
        )
        return JSONResponse({"error": str(error)}, status)
