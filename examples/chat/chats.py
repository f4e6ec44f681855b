"""The chats of many users: an agent over a tree of messages, and the verbs that the page calls."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from langchain_threadmem import ChatMemory, MemorySystem, ThreadMemMiddleware, ThreadMemSaver
from langchain_threadmem.errors import ThreadMemError
from langchain_threadmem.messages.display import body_of
from langchain_threadmem.selection.selectors import AnySelector

Emit = Callable[[str, Any], None]
"""Sends an event with its data to the page."""
SHOWN = 100
"""The number of messages of a thread that the page shows at first."""
log = logging.getLogger("chat")


class Chats:
    """The conversations of all users, and the answers that are being written.

    Args:
        system: The memory of all users.
        model: The chat model.
        selector: Selects the threads; by default `SemanticNodeSelector`.
    """

    def __init__(
        self, system: MemorySystem, model: BaseChatModel, selector: AnySelector | None = None
    ) -> None:
        self.system = system
        threads = ThreadMemMiddleware(system, selector=selector, owner="user_id")
        saver = ThreadMemSaver(system, owner="user_id")
        self.agent = create_agent(model, middleware=[threads], checkpointer=saver)
        # Answers an earlier message again. It has no checkpointer, so the conversation keeps its state.
        self.again = create_agent(model, middleware=[threads])
        self.running: dict[tuple[str, str], asyncio.Task[None]] = {}

    def listed(self, user: str) -> list[dict[str, Any]]:
        """The conversations of a user, the last used first."""
        found = self.system.for_owner(user).list_conversations(limit=100)
        return [{"id": one.id, "title": one.title} for one in found]

    def chat(self, user: str, conversation: str) -> Chat:
        """A conversation of a user."""
        memory = self.system.for_owner(user).conversation(conversation)
        return Chat(self, (user, conversation), memory)


@dataclass(frozen=True)
class Chat:
    """A conversation of a user."""

    chats: Chats
    key: tuple[str, str]
    memory: ChatMemory

    @property
    def config(self) -> RunnableConfig:
        """The configuration of the agent's runs, which names the user and the conversation."""
        user, conversation = self.key
        return {"configurable": {"thread_id": conversation, "user_id": user}}

    def state(self, everything: bool = False) -> dict[str, Any]:
        """The threads of the conversation, and the messages of the active thread, for the page."""
        memory, tip = self.memory, self.memory.tip
        path = [] if tip is None else memory.thread(tip.id)
        said = [node for node in path if node.message.type in ("human", "ai") and node.message.text]
        shown = said if everything else said[-SHOWN:]
        unsure = {doubt.node.id: doubt.runner_up for doubt in memory.doubtful(limit=SHOWN)}
        messages = [
            {
                "id": node.id,
                "parent": node.parent_id,
                "role": node.message.type,
                "text": node.message.text,
                "parts": body_of(node.message),
                "versions": [version.id for version in memory.versions(node.id)],
                "suggestion": asdict(unsure[node.id]) if node.id in unsure else None,
            }
            for node in shown
        ]
        listed = memory.list_threads(limit=SHOWN)
        alike = Counter((one.root_id, one.title) for one in listed)
        threads = [
            {
                **{key: getattr(one, key) for key in ("id", "title", "preview", "messages", "active")},
                # Branches may have equal titles.
                "name": one.title
                if alike[one.root_id, one.title] == 1
                else f"{one.title} › {one.preview[:60]}",
            }
            for one in listed
        ]
        earlier, busy = len(said) - len(shown), self.key in self.chats.running
        return {"threads": threads, "messages": messages, "earlier": earlier, "busy": busy}

    async def send(self, text: str, emit: Emit) -> None:
        """Answer a new message, in the thread that the selector chooses."""
        tip = await self.memory.atip()
        former = None if tip is None else tip.id
        await self._answer(self.chats.agent, [HumanMessage(text)], emit, former=former)

    async def edit(self, node: int, text: str, emit: Emit) -> None:
        """Answer a new version of a message. The message is in its place, so no thread is selected."""
        edited = await self.memory.aedit(node, text)
        emit("state", await asyncio.to_thread(self.state))
        await self._answer(self.chats.agent, [edited.message], emit, asked=edited.id)

    async def regenerate(self, node: int, emit: Emit) -> None:
        """Answer a message again. The middleware stores the answer as a new version of the former answer."""
        path = await self.memory.athread(node)
        end = max(index for index, one in enumerate(path) if one.message.type == "human")
        thread = [one.message for one in path[: end + 1]]
        await self._answer(self.chats.again, thread, emit, asked=path[end].id)

    async def place(self, node: int, parent: int | None) -> None:
        """Move a message, with its answer, to another thread, and show that thread."""
        placed = await self.memory.aplace(node, parent)
        await self.memory.aswitch(placed.id)

    async def _answer(
        self,
        agent: Any,
        messages: Sequence[BaseMessage],
        emit: Emit,
        asked: int | None = None,
        former: int | None = None,
    ) -> None:
        """Stream the answer of an agent. If it is stopped, the text so far becomes the answer.

        Args:
            agent: The agent.
            messages: Its input.
            emit: Sends events to the page.
            asked: The node of the question, if it is stored.
            former: The last node of the thread that was active before a new question.
        """
        said = ""
        stream = agent.astream({"messages": messages}, self.config, stream_mode=["messages", "custom"])
        try:
            async for mode, part in stream:
                if mode == "messages" and isinstance(part[0], AIMessage):
                    said += part[0].text
                    emit("token", part[0].text)
                elif mode == "custom" and part["type"] == "threadmem.selection":
                    asked = part["node_id"]
                    if part["kind"] != "continues":
                        emit("state", await asyncio.to_thread(self.state))
                        shown = {key: part[key] for key in ("kind", "title", "node_id")}
                        emit("selection", shown | {"former": former})
        except asyncio.CancelledError:
            if said and asked is not None:
                await self.memory.aregenerate(asked, said)

    def stream(self, work: Callable[[Emit], Awaitable[None]]) -> AsyncIterator[str]:
        """Run `work` in a task and yield its events. The task continues if the reader stops."""
        events = asyncio.Queue[str | None]()

        def emit(event: str, data: Any) -> None:
            events.put_nowait(f"event: {event}\ndata: {json.dumps(data)}\n\n")

        async def run() -> None:
            try:
                await work(emit)
            except Exception as error:
                log.exception("the answer failed")
                emit("error", str(error) if isinstance(error, ThreadMemError) else "The model failed.")
            finally:
                del self.chats.running[self.key]
                emit("state", await asyncio.to_thread(self.state))
                events.put_nowait(None)

        async def read() -> AsyncIterator[str]:
            while (event := await events.get()) is not None:
                yield event

        self.chats.running[self.key] = asyncio.create_task(run())
        return read()

    def stop(self) -> None:
        """Stop the answer that is being written, if any."""
        task = self.chats.running.get(self.key)
        if task is not None and not task.cancelling():
            task.cancel()
