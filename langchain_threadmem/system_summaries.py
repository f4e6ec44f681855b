"""The verbs of `MemorySystem` about summaries: writing them, and unfolding them down to the messages."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from langchain_threadmem.background import Background
from langchain_threadmem.core.grouping import Limits
from langchain_threadmem.core.names import check_name
from langchain_threadmem.core.nodes import Recollection
from langchain_threadmem.core.units import MemoryUnit
from langchain_threadmem.core.usage import Usage
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows import hierarchy, unfold
from langchain_threadmem.flows.embedding import Progress
from langchain_threadmem.flows.renew import By, Summarising
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import arun, run
from langchain_threadmem.flows.summarize import Summarizer


class SummaryVerbs:
    """Summaries: messages below sessions, sessions below the long-term memory."""

    runtime: Runtime
    summarizer: Summarizer
    """What writes summaries of sessions and of the long-term memory."""
    _session: str | None
    _limits: Limits
    _background: Background

    @property
    def usage(self) -> Usage:
        """Model calls and tokens since the memory was opened, by purpose and conversation.

        Counted is what the selectors and summarizers of this package ask, and what `create_threaded_chat`
        answers.
        """
        return self.runtime.usage

    def summarize_session(
        self, id: str | None = None, *, by: By | None = None, progress: Progress | None = None
    ) -> MemoryUnit | None:
        """Bring the summaries of a session up to date.

        Its messages are summarised in groups of at most `max_group_size` units and `max_token_count` tokens,
        the summaries likewise, until one is left: the session's, of rank 1, with the session's id. Summaries
        are made anew only where something changed: with nothing new, none is.

        One call of the summarizer for each group. If one fails, nothing is changed, a warning says so, and
        the next run goes on from there.

        Args:
            id: The session: any conversation of the owner; by default the session at hand.
            by: Group messages as they were said ("session"), or thread by thread ("thread"), as threads are
                the topics. By default as the session was grouped the last time, at first "session".
            progress: Called after each summary with how many were written and how many there will be, as far
                as that is known; a run that goes on where another failed counts from the beginning.

        Returns:
            The summary of the session; `None` if a summary could not be written, or nothing is left to
            summarise.

        Raises:
            SessionNotFoundError: Nothing was said in it.
            InputError: `by` is unknown, or there is no session at hand.
            StorageBusyError: Messages kept changing while they were summarised.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("How warm is bread dough?", "About 25 degrees.")
            >>> summary = system.summarize_session("monday")
            >>> summary.id, summary.rank, len(summary.children_ids)
            ('monday', 1, 2)
            >>> [unit.content for unit in system.unfold(summary)]
            ['How warm is bread dough?', 'About 25 degrees.']
        """
        return run(hierarchy.summarize_session(self._how(progress), self._named(id), by), self.runtime)

    async def asummarize_session(
        self, id: str | None = None, *, by: By | None = None, progress: Progress | None = None
    ) -> MemoryUnit | None:
        """Async `summarize_session`."""
        return await arun(hierarchy.summarize_session(self._how(progress), self._named(id), by), self.runtime)

    def summarize_thread(
        self, node_id: int, *, session: str | None = None, progress: Progress | None = None
    ) -> MemoryUnit | None:
        """Bring the summaries of one thread up to date, and leave those of others as they are.

        They are those that `summarize_session(by="thread")` writes, which takes them up when it is called:
        no thread is summarised twice. Until then, what lies above them is stale.

        Args:
            node_id: The number of any message in the thread. What threads share belongs to the oldest of
                them; of a later one, what comes after its fork is summarised.
            session: As `id` for `summarize_session`.
            progress: As for `summarize_session`.

        Returns:
            The topmost summary of the thread; `None` if one could not be written.

        Raises:
            SessionNotFoundError: Nothing was said in the session.
            NodeNotFoundError: There is no such message in it.
            InputError: The session is summarised as it was said, the message was superseded, or there is no
                session at hand.
            StorageBusyError: Messages kept changing while they were summarised.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> memory = system.conversation("monday")
            >>> baking = memory.append("How warm is bread dough?", "About 25 degrees.")
            >>> travel = memory.append("When does the ferry leave?", "At nine.")
            >>> node = memory.place(travel[0].id, None)
            >>> summary = system.summarize_thread(memory.roots()[1].id, session="monday")
            >>> [unit.content for unit in system.unfold(summary)]
            ['When does the ferry leave?', 'At nine.']
        """
        flow = hierarchy.summarize_thread(self._how(progress), self._named(session), node_id)
        return run(flow, self.runtime)

    async def asummarize_thread(
        self, node_id: int, *, session: str | None = None, progress: Progress | None = None
    ) -> MemoryUnit | None:
        """Async `summarize_thread`."""
        flow = hierarchy.summarize_thread(self._how(progress), self._named(session), node_id)
        return await arun(flow, self.runtime)

    def _named(self, id: str | None) -> str:
        chosen = self._session if id is None else id
        if chosen is None:
            raise InputError("there is no session at hand; pass the id of one, sessions() lists them")
        check_name("a session id", chosen)
        return chosen

    def summarize_long_term_memory(self, *, progress: Progress | None = None) -> MemoryUnit | None:
        """Bring the summaries of every session up to date, and those above them.

        The summaries of the sessions are grouped like messages are, until one is left: that of the long-term
        memory, of rank 2, whose id is the owner's name.

        Args:
            progress: As for `summarize_session`; what is expected grows from session to session.

        Returns:
            The summary of the long-term memory; `None` if one could not be written, or nothing was said.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(owner="ada", embeddings=False)
            >>> for name in ("monday", "tuesday"):
            ...     nodes = system.conversation(name).append(f"It is {name}.", "Noted.")
            >>> summary = system.summarize_long_term_memory()
            >>> summary.id, summary.rank, summary.children_ids
            ('ada', 2, ('monday', 'tuesday'))
        """
        return run(hierarchy.summarize_long_term_memory(self._how(progress)), self.runtime)

    async def asummarize_long_term_memory(self, *, progress: Progress | None = None) -> MemoryUnit | None:
        """Async `summarize_long_term_memory`."""
        return await arun(hierarchy.summarize_long_term_memory(self._how(progress)), self.runtime)

    def summarize_in_background(self, id: str | None = None) -> Future[MemoryUnit | None]:
        """Begin `summarize_session`, or `summarize_long_term_memory`, and return at once.

        It runs in a thread of the memory's own, one such call after the other, so that no reply has to wait
        for it. `close` waits for the one that is running and drops those that have not begun; what they would
        have done, the next call does.

        Args:
            id: The session; by default the whole long-term memory.

        Returns:
            A future with what the verb returns or raises; an error is logged too.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> with MemorySystem(embeddings=False) as system:
            ...     nodes = system.conversation("monday").append("How warm is dough?", "About 25 degrees.")
            ...     system.summarize_in_background("monday").result().rank
            1
        """
        if id is None:
            return self._background.submit("summarising the memory", self.summarize_long_term_memory)
        return self._background.submit(f"summarising session {id!r}", lambda: self.summarize_session(id))

    async def asummarize_in_background(self, id: str | None = None) -> asyncio.Future[MemoryUnit | None]:
        """Async `summarize_in_background`: what it returns can be awaited."""
        return asyncio.wrap_future(self.summarize_in_background(id))

    def _how(self, progress: Progress | None) -> Summarising:
        return Summarising(self.runtime, self.summarizer, self._limits, progress)

    def unit(self, id: str, *, session: str | None = None) -> MemoryUnit:
        """A message or a summary by its id.

        Args:
            id: A message's id, a session's (its summary), the owner's (the long-term memory's), or that of a
                summary in between. If several have it, the one of the highest rank is meant.
            session: Which session a message is in, if messages of several have that id.

        Raises:
            UnitNotFoundError: There is none; a session that was not summarised has no summary.
            InputError: Messages of several sessions have the id.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> added = system.add_memory("I live in Lisbon.", source="user")
            >>> system.unit(added.id) == added
            True
        """
        return run(unfold.named(self.runtime, id, session), self.runtime)

    async def aunit(self, id: str, *, session: str | None = None) -> MemoryUnit:
        """Async `unit`."""
        return await arun(unfold.named(self.runtime, id, session), self.runtime)

    def unfold(self, unit: MemoryUnit | Recollection | str, *, levels: int | None = None) -> list[MemoryUnit]:
        """What a summary was made from, in order: by default the messages that it covers.

        Args:
            unit: A summary, a hit of `ChatMemory.recall` that is one, or its id; a message unfolds to itself.
            levels: How many levels to go down; 1 gives what it was made from directly.

        Raises:
            UnitNotFoundError: There is no such unit any more.
            InputError: `levels` is negative, or messages of several sessions have the id.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False, settings={"max_group_size": 2})
            >>> nodes = system.conversation("monday").extend(["one", "two", "three"])
            >>> root = system.summarize_session("monday")
            >>> [len(unit.children_ids) for unit in system.unfold(root, levels=1)]
            [2, 1]
            >>> [unit.content for unit in system.unfold("monday")]
            ['one', 'two', 'three']
        """
        return run(unfold.unfold(self.runtime, unit, levels), self.runtime)

    async def aunfold(
        self, unit: MemoryUnit | Recollection | str, *, levels: int | None = None
    ) -> list[MemoryUnit]:
        """Async `unfold`."""
        return await arun(unfold.unfold(self.runtime, unit, levels), self.runtime)
