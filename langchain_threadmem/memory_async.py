"""The verbs of `ChatMemory` for asyncio: the same flows, driven on the event loop.

Each is described at the method of `ChatMemory` without the `a` in front.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, Unpack

from langchain_core.messages import BaseMessage

from langchain_threadmem.core import tree as tree_core
from langchain_threadmem.core.nodes import ConversationNode, Recollection
from langchain_threadmem.core.wanted import Conditions, Wanted
from langchain_threadmem.flows import append, embedding, files, read, recall, revise, show, summarize, whole
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.rows import Given
from langchain_threadmem.flows.steps import Flow, Step, T, arun
from langchain_threadmem.flows.verify import Verification, verify_conversation

if TYPE_CHECKING:
    import networkx as nx


class AsyncVerbs:
    """The async twins of `ChatMemory`'s methods."""

    _conversation: Conversation

    def _arun(self, flow: Flow[T] | Step[T]) -> Coroutine[Any, Any, T]:
        return arun(flow, self._conversation.runtime)

    async def aappend(self, human: Given, ai: Given | None = None, *more: Given) -> list[ConversationNode]:
        """Async `append`."""
        answers = more if ai is None else (ai, *more)
        return await self._arun(append.append(self._conversation, human, *answers))

    async def aextend(
        self, messages: Iterable[Given], timestamps: Iterable[datetime] | None = None
    ) -> list[ConversationNode]:
        """Async `extend`."""
        return await self._arun(append.extend(self._conversation, messages, timestamps))

    async def aedit(self, node_id: int, message: Given) -> ConversationNode:
        """Async `edit`."""
        return await self._arun(revise.edit(self._conversation, node_id, message))

    async def aregenerate(self, node_id: int, message: Given) -> list[ConversationNode]:
        """Async `regenerate`."""
        return await self._arun(revise.regenerate(self._conversation, node_id, message))

    async def aplace(self, node_id: int, parent_id: int | None) -> ConversationNode:
        """Async `place`."""
        return await self._arun(revise.place(self._conversation, node_id, parent_id))

    async def acheckout(self, node_id: int) -> ConversationNode:
        """Async `checkout`."""
        return await self._arun(revise.checkout(self._conversation, node_id))

    async def asummarize(self, node_id: int | None = None) -> list[ConversationNode]:
        """Async `summarize`."""
        return await self._arun(summarize.summarize(self._conversation, node_id))

    async def areset(self) -> None:
        """Async `reset`."""
        await self._arun(whole.reset(self._conversation))

    async def amessages(self) -> list[BaseMessage]:
        """Async `messages`."""
        return await self._arun(read.messages(self._conversation))

    async def atip(self) -> ConversationNode | None:
        """Async `tip`."""
        return await self._arun(read.tip(self._conversation))

    async def ahistory(self) -> list[ConversationNode]:
        """Async `history`."""
        return await self._arun(read.everything(self._conversation))

    async def agraph(self) -> nx.DiGraph[int]:
        """Async `graph`."""
        return tree_core.to_graph(tree_core.living(await self.ahistory()))

    async def athreads(self) -> list[list[ConversationNode]]:
        """Async `threads`."""
        return tree_core.threads(await self.ahistory())

    async def athread(self, node_id: int) -> list[ConversationNode]:
        """Async `thread`."""
        return await self._arun(read.thread(self._conversation, node_id))

    async def aroots(self) -> list[ConversationNode]:
        """Async `roots`."""
        return tree_core.roots(await self.ahistory())

    async def aretrieve(
        self,
        query: str,
        n_results: int = 10,
        context_depth: int | None = None,
        order: recall.Order = "chronological",
        *,
        fallback: recall.Fallback = "nothing",
    ) -> list[BaseMessage]:
        """Async `retrieve`."""
        return await self._arun(
            recall.retrieve(self._conversation, query, n_results, context_depth, order, fallback)
        )

    async def arecall(
        self,
        query: str,
        n_results: int = 10,
        context_depth: int | None = None,
        **conditions: Unpack[Conditions],
    ) -> list[Recollection]:
        """Async `recall`."""
        wanted = Wanted(n_results, **conditions)
        return await self._arun(recall.recall(self._conversation, query, wanted, context_depth))

    async def aflush(self) -> int:
        """Async `flush`."""
        tree = await self._arun(tree_of(self._conversation))
        return await self._arun(embedding.flush(self._conversation.runtime, tree))

    async def ato_mermaid(self, **options: Any) -> str:
        """Async `to_mermaid`."""
        return show.mermaid(await self.ahistory(), **options)

    async def aexport(self, format: str = "json") -> str:
        """Async `export`."""
        return await self._arun(show.export(self._conversation, format))

    async def asave(self, path: str | Path) -> None:
        """Async `save`."""
        await asyncio.to_thread(files.write_text, path, await self.aexport("json"))

    @classmethod
    async def aload(cls, path: str | Path, **options: Any) -> Self:
        """Async `load`."""
        document, tip, implied = show.load(await asyncio.to_thread(files.read_text, path))
        memory = cls(**{**implied, **options})
        await memory._arun(whole.restore(memory._conversation, document.nodes, tip))
        return memory

    async def averify(self) -> Verification:
        """Async `verify`."""
        return await self._arun(verify_conversation(self._conversation))

    async def aclose(self) -> None:
        """Async `close`."""
        await self._conversation.runtime.aclose()
