"""The verbs of `MemorySystem` about sessions: beginning and resuming them, adding to the one at hand."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import uuid4

from langchain_core.messages import BaseMessage

from langchain_threadmem.core.units import MemoryUnit
from langchain_threadmem.errors import InputError
from langchain_threadmem.flows import sessions
from langchain_threadmem.flows.steps import Flow, Sql, arun, run
from langchain_threadmem.flows.whole import Cascade
from langchain_threadmem.storage.queries import trees
from langchain_threadmem.system_longterm import LongTermVerbs


class SessionVerbs(LongTermVerbs):
    """Sessions: each is a conversation, and one of them is the one at hand."""

    _session: str | None = None

    @property
    def session_id(self) -> str | None:
        """The session at hand, if there is one."""
        return self._session

    def start_session(self, id: str | None = None) -> str:
        """Begin a session, or go on with one, and make it the session at hand.

        Args:
            id: Which to go on with; one that does not exist begins under that name. "LATEST" is the one in
                which something was said last, or a new one if there is none. By default a new one.

        Returns:
            The session's id, which is also its `conversation_id`.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> system.start_session("monday")
            'monday'
            >>> unit = system.add_memory("I live in Lisbon.", source="user")
            >>> system.start_session("LATEST"), system.conversation("monday").messages[0].content
            ('monday', 'I live in Lisbon.')
        """
        return self._begin(None if id is None else run(sessions.resume(self.runtime, id), self.runtime))

    async def astart_session(self, id: str | None = None) -> str:
        """Async `start_session`."""
        return self._begin(
            None if id is None else await arun(sessions.resume(self.runtime, id), self.runtime)
        )

    def _begin(self, id: str | None) -> str:
        self._session = id or str(uuid4())
        return self._session

    def switch_session(self, id: str) -> str:
        """Make a session that exists the one at hand; "LATEST" is the one in which something was said last.

        Raises:
            SessionNotFoundError: Nothing was ever said in it.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> for name in ("monday", "tuesday"):
            ...     nodes = system.conversation(name).append("Hello", "Hi!")
            >>> system.switch_session("monday"), system.sessions()
            ('monday', ['monday', 'tuesday'])
        """
        if id != self._session:
            self._session = run(sessions.switch(self.runtime, id), self.runtime)
        return self._session

    async def aswitch_session(self, id: str) -> str:
        """Async `switch_session`."""
        if id != self._session:
            self._session = await arun(sessions.switch(self.runtime, id), self.runtime)
        return self._session

    def remove_session(self, id: str, *, cascade: Cascade = "stale") -> None:
        """Remove a session for good: its messages, its summaries, their words and vectors. Their bytes stay
        in free space of the files until `scrub`.

        If it was the session at hand, there is none until the next is started.

        Args:
            id: The session.
            cascade: What becomes of the summaries of the long-term memory that cover it: they are "stale"
                until `summarize_long_term_memory` makes them anew, or "delete": they go as well, and with
                them what they say about other sessions.

        Raises:
            SessionNotFoundError: There is no such session.
            InputError: `cascade` is neither of the two.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> session = system.add_memory("Hello").group_id
            >>> system.remove_session(session)
            >>> system.sessions(), system.session_id is None
            ([], True)
        """
        run(sessions.remove(self.runtime, id, cascade), self.runtime)
        self._leave(id)

    async def aremove_session(self, id: str, *, cascade: Cascade = "stale") -> None:
        """Async `remove_session`."""
        await arun(sessions.remove(self.runtime, id, cascade), self.runtime)
        self._leave(id)

    def _leave(self, id: str) -> None:
        if self._session == id:
            self._session = None

    def sessions(self) -> list[str]:
        """The sessions in which something was said, the oldest first, and the one at hand."""
        return run(self._listed(), self.runtime)

    async def asessions(self) -> list[str]:
        """Async `sessions`."""
        return await arun(self._listed(), self.runtime)

    def _listed(self) -> Flow[list[str]]:
        owner, current = self.runtime.owner, self._session
        found = [name for name, _ in (yield from Sql(lambda conn: trees.conversations(conn, owner)))]
        return found if current is None or current in found else [*found, current]

    def add_memory(
        self,
        content: str | BaseMessage,
        source: str | None = None,
        creation_time: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        never_delete: bool = False,
    ) -> MemoryUnit:
        """Store a message at the end of the session at hand; without one, a session is started.

        It is durable when this returns. A message that has an `id` is stored once, however often it is added.

        Args:
            content: Text, or a LangChain message.
            source: Who says the text: "ai" by default, "user", "system", or a role of one's own. A message
                knows its source itself.
            creation_time: When it was said; by default now. A time without a zone is UTC.
            metadata: Values to keep with it: the message's `additional_kwargs`.
            never_delete: Exempt it from being forgotten.

        Returns:
            The unit, linked to the one before it.

        Raises:
            InputError: The text is empty, or the source is not the message's.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> first = system.add_memory("What was the project called?", source="user")
            >>> second = system.add_memory("It was called Heron.")
            >>> second.source, second.pre_id == first.id, second.group_id == system.session_id
            ('ai', True, True)
        """
        flow = sessions.add(
            self.runtime, self._at_hand(), content, source, creation_time, metadata, never_delete
        )
        return run(self._kept_small(flow), self.runtime)

    async def aadd_memory(
        self,
        content: str | BaseMessage,
        source: str | None = None,
        creation_time: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        never_delete: bool = False,
    ) -> MemoryUnit:
        """Async `add_memory`."""
        flow = sessions.add(
            self.runtime, self._at_hand(), content, source, creation_time, metadata, never_delete
        )
        return await arun(self._kept_small(flow), self.runtime)

    def _at_hand(self) -> str:
        return self._session or self._begin(None)

    def get_context(self, length: int | None = None) -> list[MemoryUnit]:
        """The last messages of the session at hand, oldest first: what a prompt begins with.

        Args:
            length: How many; at most, and by default, the `max_context_length` of the settings.

        Raises:
            InputError: `length` is negative.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> units = [system.add_memory(f"m{n}") for n in range(5)]
            >>> [unit.content for unit in system.get_context(2)], system.get_context(0)
            (['m3', 'm4'], [])
        """
        return run(sessions.context(self.runtime, self._session, self._length(length)), self.runtime)

    async def aget_context(self, length: int | None = None) -> list[MemoryUnit]:
        """Async `get_context`."""
        return await arun(sessions.context(self.runtime, self._session, self._length(length)), self.runtime)

    def _length(self, length: int | None) -> int:
        most = self.settings.max_context_length
        if not (length is None or hasattr(length, "__index__")):
            raise InputError(f"length={length!r} is no number; pass how many messages to show")
        return most if length is None else min(length, most)
