"""`MemorySystem`: all conversations of one owner in one database.

Each method is a flow that `verb` runs in the calling thread and `averb` on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack
from uuid import uuid4

from langchain_core.messages import BaseMessage

from langchain_threadmem.chat_memory import ChatMemory, ConversationOptions
from langchain_threadmem.common.filters.store import Filter
from langchain_threadmem.common.inputs import Progress, check_no_class, is_whole
from langchain_threadmem.common.usage import Usage
from langchain_threadmem.engine.flow import Flow, Sql, arun, averb, run, verb
from langchain_threadmem.engine.owners import OwnerOfRun, Run, check_person, owner_of_run
from langchain_threadmem.engine.runtime import Resources, Runtime
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.formats.importers.verbs import ImportReport, import_file
from langchain_threadmem.index.indexes import IndexSettings
from langchain_threadmem.index.language import ENGLISH, Language
from langchain_threadmem.index.owner_index import flush, reindex
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.long_term import query, sessions
from langchain_threadmem.long_term.external import ExternalCollection
from langchain_threadmem.long_term.lists import verbs as catalogue
from langchain_threadmem.long_term.lists.verbs import Archived, ConversationInfo, Page
from langchain_threadmem.long_term.query import QueryOptions
from langchain_threadmem.long_term.sessions import CurrentSession
from langchain_threadmem.long_term.sources import Sources
from langchain_threadmem.maintenance.rekey import rekey
from langchain_threadmem.maintenance.removal import erase, forget
from langchain_threadmem.maintenance.removal.erase import Cascade, Receipt, Scrubbed
from langchain_threadmem.maintenance.removal.forget import Forgotten
from langchain_threadmem.maintenance.removal.scores import Scorer
from langchain_threadmem.maintenance.statistics import Statistics, statistics
from langchain_threadmem.maintenance.verify import Verification, verify_system
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.recall import unfold
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.selection.moves.corrections import reset_corrections
from langchain_threadmem.settings import MemorySettings
from langchain_threadmem.summaries import verbs as summaries_verbs
from langchain_threadmem.summaries.hierarchy import Limits, most_tokens
from langchain_threadmem.summaries.run import By, Summarising
from langchain_threadmem.summaries.summarizers import (
    ExtractiveSummarizer,
    LLMSummarizer,
    Summarizer,
    check_summarizer,
)
from langchain_threadmem.tree import trees

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from langchain_core.embeddings import Embeddings

    from langchain_threadmem.engine.chat_model import Model
    from langchain_threadmem.index.vector_index import VectorIndex
    from langchain_threadmem.storage.encryption import Cipher


class SystemOptions(TypedDict, total=False):
    """The options of `MemorySystem`."""

    owner: str | Callable[[Run], Any]
    embeddings: Embeddings | Literal[False] | None
    vectors: str | Path | ClientAPI | VectorIndex | None
    settings: MemorySettings | Mapping[str, Any] | str | Path | None
    cipher: Cipher | None
    language: Language | None
    model: Model | None
    summarizer: Summarizer | None
    token_counter: Callable[[str], int]
    pool_size: int | None
    max_overflow: int | None
    read_only: bool


class MemorySystem:
    """All conversations, sessions and summaries of one owner.

    Owners of the same database never see each other's data.

    The constructor opens the database. On a running event loop the first call opens it instead, so that the
    loop is not blocked, and raises the errors of opening; `await MemorySystem.aopen(...)` opens it at once.
    After `os.fork()` both processes can use the system, each with its own connections; a child of a process
    with a database in memory has a copy of the database.

    Args:
        url: `sqlite:///memory.db` or a path, `postgresql://user@host/name`, or `None` for a database in
            memory. The database may contain other tables; the tables of this package, which are created if
            they are missing, have names that begin with `threadmem_`.
            `sqlite:///memory.db?synchronous=FULL` waits for the disk at every commit; by default stored turns
            survive a crash of the process, but not a power failure.
            `postgresql://user@host/name?pool_size=20&max_overflow=0` sets the number of connections, and
            `replica=` a server for reads; PgBouncer in transaction mode is detected, or named with
            `?prepared_statements=false`.
        owner: The owner of the memory, or a function of the run that makes a call
            (`lambda run: run.context.user_id`, `ContextField("user_id")` of `engine.owners`): the system then
            serves the owner of each run, and fails outside of a run without `for_owner`.
        embeddings: A LangChain embedding model; `None` for the local model if its files are installed,
            `False` for none. Texts are embedded when a call first needs vectors.
        vectors: The vector index over all conversations: a directory for Chroma, the URL of a Chroma server
            (`http://host:8000`, `https://TOKEN@host`), a Chroma client, or an object with the methods of
            `index.vector_index.VectorIndex`. By default the process for fewer than 20,000 vectors, then
            Chroma in a directory beside the database file. One process at a time uses a directory.
        settings: `MemorySettings`, a mapping of its fields, or the path of a TOML, YAML or JSON file.
        cipher: Encrypts messages, summaries, vectors and values of a `ThreadMemStore` before they are
            written: an object with `encrypt` and `decrypt` as in LangGraph's `EncryptedSerializer(cipher)`.
            Data without encryption is then refused, no index on disk contains words, and recall searches one
            conversation at a time. Names, keys, ids, roles, times and lengths are not encrypted.
        language: Stems, stop words and times for recall; `None` for English, `PLAIN` of `index.language` for
            unchanged words in any script. A language with another name has another index, which the next
            recall builds.
        model: A chat model, or the name of one as for `ChatMemory.threaded`, that writes summaries of
            sessions. By default summaries consist of sentences of the messages.
        summarizer: A summarizer in place of `model`: an `LLMSummarizer`, an `ExtractiveSummarizer`, or an
            object with `summarize(message)`.
        token_counter: Counts the tokens of a text for `max_token_count`; by default the number of characters
            plus 1, which no tokenizer exceeds.
        pool_size: Number of connections to PostgreSQL that stay open, by default 5. Callers wait for a free
            connection; async callers share one connection for writes and a few for reads.
        max_overflow: Number of further connections that are opened while they are needed, by default 10.
        read_only: Whether to write nothing to the database. Methods that write fail, and a database that is
            missing, is empty or needs a migration is refused. Recall and `query` find every message by its
            words, and messages whose vectors are stored also by meaning; `query` counts no visits. The first
            search of all conversations reads the messages that no earlier recall has indexed, about 0.1 ms
            each, and keeps their words in memory.

    Raises:
        InputError: An argument has the wrong type or is out of its range.
        EncryptionError: The owner's memory was written with another key.
        PersistenceError: The database or the settings file cannot be opened.

    Example:
        >>> with MemorySystem(owner="ada") as system:
        ...     nodes = system.conversation("first").append("Hello", "Hi!")
        ...     system.conversations()
        ['first']
    """

    def __init__(
        self,
        url: str | Path | None = None,
        *,
        owner: str | Callable[[Run], Any] = "user",
        embeddings: Embeddings | Literal[False] | None = None,
        vectors: str | Path | ClientAPI | VectorIndex | None = None,
        settings: MemorySettings | Mapping[str, Any] | str | Path | None = None,
        cipher: Cipher | None = None,
        language: Language | None = None,
        model: Model | None = None,
        summarizer: Summarizer | None = None,
        token_counter: Callable[[str], int] = most_tokens,
        pool_size: int | None = None,
        max_overflow: int | None = None,
        read_only: bool = False,
    ) -> None:
        self.settings = MemorySettings.of(settings)
        if summarizer is None:
            summarizer = ExtractiveSummarizer() if model is None else LLMSummarizer(model)
        check_no_class("token_counter", token_counter)
        if not callable(token_counter):
            raise InputError(f"token_counter={token_counter!r} cannot count; pass a function text -> int")
        self.summarizer = check_summarizer(summarizer)
        """The summarizer of sessions and of the long-term memory."""
        self._limits = Limits(self.settings.max_group_size, self.settings.max_token_count, token_counter)
        self.owner_of_run = owner if callable(owner) else None
        """Names the owner of a run, if the system serves the owners of many runs."""
        self._is_view = False
        self._serves_run = False
        """Whether the owner was chosen for the run that calls, so that the run may name another person."""
        self.resources = Resources.open(
            url,
            embeddings=embeddings,
            cipher=cipher,
            pool_size=pool_size,
            max_overflow=max_overflow,
            read_only=read_only,
        )
        try:
            self.resources.get(IndexSettings).configure(
                vectors, ENGLISH if language is None else language, self.settings.embedding_history_length
            )
            self._fixed = None if callable(owner) else self.resources.runtime(owner)
            if self._fixed is not None:
                self._fixed.admit()
        except ThreadMemError:
            self.resources.database.close()
            raise

    def for_owner(self, owner: str) -> Self:
        """The memory of another owner in the same database, with the same settings and models.

        All owners share the connections, the embedding model and the caches. The call takes some
        microseconds; make the system of a user in each request. The current session and the short-term memory
        of an owner last while a caller refers to a system of the owner, and for the 256 owners used last.

        Args:
            owner: The name of the owner.

        Returns:
            A system whose `close` stores the owner's values that are only in memory; the database stays open.

        Raises:
            InputError: The name is not text, or is empty.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.for_owner("ada").conversation("first").append("Hello", "Hi!")
            >>> system.for_owner("ada").conversations(), system.for_owner("bob").conversations()
            (['first'], [])
        """
        system = copy(self)
        system._fixed = self.resources.runtime(owner)
        system.owner_of_run, system._is_view, system._serves_run = None, True, False
        return system

    def _for_call(self, *args: object, **kwargs: object) -> Self:
        """The system of the owner that a call is for."""
        system = self.of_run(None)
        system._check_run(None)
        return system

    def of_run(self, config: Mapping[str, Any] | None) -> Self:
        """The system of the owner of a run; a system of one owner returns itself.

        Args:
            config: The configuration of the run; `None` for that of the run around the call.

        Raises:
            OwnerRequiredError: The run names no owner.
        """
        return self if self.owner_of_run is None else self._of_owner(self.owner_of_run, config)

    def _of_owner(self, owner: OwnerOfRun, config: Mapping[str, Any] | None) -> Self:
        """The system of the owner that a field or a function chooses for a run."""
        system = self.for_owner(owner_of_run(owner, Run(config)))
        system._serves_run = True
        return system

    def _check_run(self, config: Mapping[str, Any] | None) -> None:
        """Refuse a run that names another person than the owner, unless the owner was chosen for the run."""
        if not self._serves_run:
            check_person(Run(config), self.owner)

    @property
    def runtime(self) -> Runtime:
        """The runtime of the owner: the database, the embedding model and the caches.

        Raises:
            OwnerRequiredError: The system serves the owner of each run, and there is no run.
        """
        runtime = self.of_run(None)._fixed
        assert runtime is not None
        return runtime

    _runtime = runtime

    @classmethod
    async def aopen(cls, url: str | Path | None = None, **options: Unpack[SystemOptions]) -> Self:
        """Open a system without blocking the event loop.

        Args:
            url: As for `MemorySystem`.
            **options: As for `MemorySystem`.

        Raises:
            InputError: An argument has the wrong type or is out of its range.
            PersistenceError: The database or the settings file cannot be opened.

        Example:
            >>> async def main() -> list[str]:
            ...     async with await MemorySystem.aopen(owner="ada") as system:
            ...         return await system.aconversations()
            >>> asyncio.run(main())
            []
        """
        return await asyncio.to_thread(lambda: cls(url, **options))

    @property
    def owner(self) -> str:
        """The owner of the memory."""
        return self.runtime.owner

    @property
    def usage(self) -> Usage:
        """Model calls and tokens since the memory was opened, by purpose and conversation.

        Calls by selectors and summarizers of this package and by `create_threaded_chat` are counted.
        """
        return self.runtime.usage

    # Conversations and sessions

    def conversation(self, conversation_id: str, **options: Unpack[ConversationOptions]) -> ChatMemory:
        """A conversation of this owner; its first message creates it in the database.

        Args:
            conversation_id: The name: a LangGraph `thread_id`, a `session_id`.
            **options: As for `ChatMemory`; the default of `context_depth` is that of the settings.

        Raises:
            InputError: The name is not text, or an option is out of its range.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("Hello", "Hi!")
            >>> [message.content for message in system.conversation("monday").messages]
            ['Hello', 'Hi!']
        """
        conversation_id = name_of("a conversation_id", conversation_id)
        options.setdefault("context_depth", self.settings.context_depth)
        return ChatMemory(system=self, conversation_id=conversation_id, **options)

    @verb
    def conversations(self) -> Flow[list[str]]:
        """The names of the conversations with a message, the oldest first."""
        rows = yield from Sql(lambda conn: trees.conversations(conn, self.owner))
        return [name for name, _ in rows]

    aconversations = averb(conversations)

    @verb
    def list_conversations(
        self,
        *,
        query: str | None = None,
        metadata: Filter | None = None,
        since: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
        archived: Archived = False,
    ) -> Flow[Page[ConversationInfo]]:
        """The conversations of the owner with titles, previews and metadata, most recently used first.

        The title is set by `update_conversation`; otherwise it is the title of the summary, or the first
        words of the first question, about 40 characters. A page of 50 among 10,000 takes less than 20 ms.

        Args:
            query: Only conversations whose messages contain each word of the query, or whose title or id
                contains the query. Encrypted conversations are found by title and id only.
            metadata: Only conversations whose metadata matches the filter, such as `{"folder": "work"}` or
                `{"stars": {"$gte": 3}}`.
            since: Only conversations with a message from this time on; a time without a zone is UTC.
            limit: Maximum number of conversations.
            cursor: `cursor` of the previous page; `None` for the first page.
            archived: `False` omits archived conversations, `True` lists only these, "both" lists all.

        Returns:
            A list with the attribute `cursor`, which is `None` on the last page.

        Raises:
            InputError: An argument cannot be used.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("c1").append("How do I bake bread?", "With patience.")
            >>> [(info.id, info.title, info.messages) for info in system.list_conversations()]
            [('c1', 'How do I bake bread?', 2)]
        """
        return catalogue.list_conversations(self.runtime, query, metadata, since, limit, cursor, archived)

    alist_conversations = averb(list_conversations)

    @verb
    def update_conversation(
        self,
        conversation_id: str,
        *,
        title: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        archived: bool | None = None,
    ) -> Flow[ConversationInfo]:
        """Set the title or the metadata of a conversation, or archive it; `remove_session` deletes it.

        Args:
            conversation_id: The name of the conversation.
            title: The new title; "" for the default title; `None` for no change.
            metadata: A JSON object that replaces the metadata; `None` for no change.
            archived: Whether the conversation is archived; `None` for no change.

        Returns:
            The conversation as `list_conversations` shows it.

        Raises:
            SessionNotFoundError: There is no such conversation.
            InputError: An argument cannot be stored.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("c1").append("How do I bake bread?", "With patience.")
            >>> system.update_conversation("c1", title="Bread", metadata={"stars": 3}).title
            'Bread'
        """
        return catalogue.update_conversation(self.runtime, conversation_id, title, metadata, archived)

    aupdate_conversation = averb(update_conversation)

    @property
    def session_id(self) -> str | None:
        """The current session, if there is one."""
        return self._current.id

    @property
    def _current(self) -> CurrentSession:
        return self.runtime.get(CurrentSession)

    @verb
    def start_session(self, id: str | None = None) -> Flow[str]:
        """Make a new or an existing session the current session.

        Args:
            id: The name of a new or an existing session; "LATEST" for the session with the newest message,
                or a new session if there is none. By default a new session with a random name.

        Returns:
            The session's id, which is also its `conversation_id`.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> system.start_session("monday")
            'monday'
            >>> unit = system.add_memory("I live in Lisbon.", source="user")
            >>> system.start_session("LATEST"), system.conversation("monday").messages[0].content
            ('monday', 'I live in Lisbon.')
        """
        self._current.id = None if id is None else (yield from sessions.resume(self.runtime, id))
        return self._current_session()

    astart_session = averb(start_session)

    @verb
    def switch_session(self, id: str) -> Flow[str]:
        """Make an existing session the current session; "LATEST" names the session with the newest message.

        Returns:
            The session's id.

        Raises:
            SessionNotFoundError: There is no such session.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> for name in ("monday", "tuesday"):
            ...     nodes = system.conversation(name).append("Hello", "Hi!")
            >>> system.switch_session("monday"), system.sessions()
            ('monday', ['monday', 'tuesday'])
        """
        if id != self._current.id:
            self._current.id = yield from sessions.switch(self.runtime, id)
        return self._current.id

    aswitch_session = averb(switch_session)

    @verb
    def remove_session(self, id: str, *, cascade: Cascade = "delete") -> Flow[None]:
        """Remove a session permanently: its messages, its summaries, their words and vectors.

        The summaries of the long-term memory are removed too, since they may quote the session;
        `summarize_long_term_memory` writes them again. Some of their bytes stay in the files until
        `scrub`. If the session is the current session, there is no current session afterwards.

        Args:
            id: The session.
            cascade: The treatment of the summaries of the long-term memory: "delete" deletes them; "stale"
                keeps those that cover the session, with what they quote of it, and marks them as stale until
                they are written again.

        Raises:
            SessionNotFoundError: There is no such session.
            InputError: `cascade` is neither "stale" nor "delete".

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> session = system.add_memory("Hello").group_id
            >>> system.remove_session(session)
            >>> system.sessions(), system.session_id is None
            ([], True)
        """
        yield from sessions.remove(self.runtime, id, cascade)
        if self._current.id == id:
            self._current.id = None

    aremove_session = averb(remove_session)

    @verb
    def sessions(self) -> Flow[list[str]]:
        """The sessions with a message, the oldest first, and the current session."""
        rows = yield from Sql(lambda conn: trees.conversations(conn, self.owner))
        names = [name for name, _ in rows]
        current = self._current.id
        return names if current is None or current in names else [*names, current]

    asessions = averb(sessions)

    def _current_session(self) -> str:
        """The current session; a new one if there is none."""
        current = self._current
        current.id = current.id or str(uuid4())
        return current.id

    def _session_named(self, id: str | None) -> str:
        """A session by its id; by default the current session."""
        chosen = self._current.id if id is None else id
        if chosen is None:
            raise InputError("there is no current session; pass the id of a session, sessions() lists them")
        return name_of("a session id", chosen)

    # Adding and querying

    @verb
    def add_memory(
        self,
        content: str | BaseMessage,
        source: str | None = None,
        creation_time: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        *,
        never_delete: bool = False,
    ) -> Flow[MemoryUnit]:
        """Store a message at the end of the current session, or of a new session if there is none.

        The message is durable when the call returns. A message with an `id` is stored once, however often it
        is added.

        Args:
            content: Text, or a LangChain message.
            source: The role of the text: "ai" by default, "user", "system", or another role. A message has
                its own source.
            creation_time: The time of the message; by default the current time. A time without a zone is UTC.
            metadata: Values that are added to the message's `additional_kwargs`.
            never_delete: Exempt the message from forgetting.

        Returns:
            The unit, linked to the unit before it.

        Raises:
            InputError: The text is empty, the source differs from that of the message, or an argument has the
                wrong type.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> first = system.add_memory("What was the project called?", source="user")
            >>> second = system.add_memory("It was called Heron.")
            >>> second.source, second.pre_id == first.id, second.group_id == system.session_id
            ('ai', True, True)
        """
        session = self._current_session()
        unit = yield from sessions.add(
            self.runtime, session, content, source, creation_time, metadata, never_delete
        )
        self._current.added += 1
        most, interval = self.settings.max_units, self.settings.saving_interval
        if most and self._current.added % interval == 0:
            yield from forget.when_full(self.runtime, most, self.settings.forget_percentage)
        return unit

    aadd_memory = averb(add_memory)

    @verb
    def get_context(self, length: int | None = None) -> Flow[list[MemoryUnit]]:
        """The newest messages of the current session, oldest first, for the beginning of a prompt.

        Args:
            length: Number of messages; the default and the maximum are `max_context_length` of the settings.

        Raises:
            InputError: `length` is not an integer of at least 0.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> units = [system.add_memory(f"m{n}") for n in range(5)]
            >>> [unit.content for unit in system.get_context(2)], system.get_context(0)
            (['m3', 'm4'], [])
        """
        most = self.settings.max_context_length
        if not (length is None or is_whole(length, 0)):
            raise InputError(f"length={length!r} is not an integer of at least 0; pass a number of messages")
        shown = most if length is None else min(length, most)
        return sessions.context(self.runtime, self._current.id, shown)

    aget_context = averb(get_context)

    @verb
    def query(self, text: str | None = None, **options: Unpack[QueryOptions]) -> Flow[list[list[MemoryUnit]]]:
        """Find messages and summaries that match a question, in all sessions of the owner.

        Hits in short-term memory above a threshold of similarity come first, then hits in long-term memory.
        Each hit counts as a visit, which delays its forgetting. Without embeddings words are compared.

        Args:
            text: The question.
            **options: The fields of `long_term.query.QueryOptions`. The defaults of options with * are
                settings of the memory; the defaults of `MemorySettings` are given here.

                `query_vector`: the question as a vector of the memory's model, in place of the text.
                `filters`: a condition on units, `{"source": {"$eq": "ai"}}` with `$eq $ne $gt $gte $lt $lte
                $in $nin $contains $like $and $or $not`, or `[("source", "==", "ai"), ...]`, over the fields
                of `MemoryUnit` and the keys of its metadata (`metadata.topic`).
                `k_limit`*: the maximum number of hits, without their neighbours; 5.
                `search_range`*: the lowest and the highest cosine of a hit, each `None` for no limit; no
                limits, and hits are ranked as by `ChatMemory.recall`. No effect without embeddings.
                `recall_context`*: whether the messages before and after a hit are returned; `True`.
                `add_ltm_to_stm`*: whether hits in other sources enter short-term memory; `True`.
                `query_external_first`*: whether hits in external collections come first; `True`.
                `short_term_only`, `long_term_only`, `external_only`: search one source only.
                `threshold_for_stm_before_ltm`*: the lowest cosine of a hit in short-term memory that comes
                before hits in long-term memory; 0.8.
                `compat_k`: divide `k_limit` by 3 if neighbours are returned, as MemForest does.

        Returns:
            Chains of units, the best first: hits that follow each other form one chain with their neighbours.

        Raises:
            InputError: Options contradict each other, or a filter or a vector is invalid.
            EmbeddingError: The text could not be embedded.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> for text in ("What was the code name?", "The code name was Heron.", "Thank you!"):
            ...     unit = system.add_memory(text, source="ai" if "was Heron" in text else "user")
            >>> [[unit.content for unit in chain] for chain in system.query("Heron", recall_context=False)]
            [['The code name was Heron.']]
            >>> [len(chain) for chain in system.query("Heron", filters=[("source", "==", "ai")])]
            [3]
        """
        return query.query(self.runtime, query.question(self.runtime, self.settings, text, options))

    aquery = averb(query)

    @verb
    def enable_stm(self, capacity: int | None = None, restore_session_id: str | None = None) -> Flow[None]:
        """Keep the units used last in short-term memory, with their vectors; `query` searches there first.

        Added units and hits of queries enter short-term memory. A further call changes the capacity and
        keeps the newest units that fit.

        Args:
            capacity: Number of units; by default that of the settings (200).
            restore_session_id: A session whose newest units enter at once; "LATEST" for the session with the
                newest message.

        Raises:
            InputError: The capacity is not an integer of at least 1.
            SessionNotFoundError: There is no such session.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> unit = system.add_memory("The dough rests in the cellar.")
            >>> system.enable_stm(capacity=50, restore_session_id="LATEST")
            >>> system.query("Where is the dough?", short_term_only=True)[0][0].content
            'The dough rests in the cellar.'
        """
        chosen = self.settings.stm_capacity if capacity is None else capacity
        return query.enable(self.runtime, chosen, restore_session_id)

    aenable_stm = averb(enable_stm)

    @verb
    def disable_stm(self) -> Flow[None]:
        """Stop the use of short-term memory; its units stay in long-term memory."""
        self.runtime.get(Sources).short_term = None
        yield from ()

    adisable_stm = averb(disable_stm)

    def connect_external(self, collection: Collection) -> None:
        """Search a Chroma collection in queries too. The collection is never written.

        Args:
            collection: The collection, opened with `embedding_function=None`. Its vectors must be of the
                embedding model of this memory. A collection of the same name is replaced.

        Raises:
            InputError: The argument is not a collection.
        """
        fresh = ExternalCollection(collection)
        self.runtime.get(Sources).external = [
            *(other for other in self.runtime.get(Sources).external if other.name != fresh.name),
            fresh,
        ]

    def disconnect_external(self) -> None:
        """Disconnect all external collections."""
        self.runtime.get(Sources).external = []

    @verb
    def unit(self, id: str, *, session: str | None = None) -> Flow[MemoryUnit]:
        """A message or a summary by its id.

        Args:
            id: The id of a message, of a session (its summary), of the owner (the summary of the long-term
                memory), or of another summary. Of several units the one of the highest rank is returned.
            session: The session of the message, if messages of several sessions have the id.

        Raises:
            UnitNotFoundError: There is no such unit, or the session has no summary.
            InputError: Messages of several sessions have the id.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> added = system.add_memory("I live in Lisbon.", source="user")
            >>> system.unit(added.id) == added
            True
        """
        return unfold.named(self.runtime, id, session)

    aunit = averb(unit)

    # Summaries

    @verb
    def summarize_session(
        self, id: str | None = None, *, by: By | None = None, progress: Progress | None = None
    ) -> Flow[MemoryUnit | None]:
        """Update the summaries of a session.

        Its messages are summarised in groups of at most `max_group_size` units and `max_token_count` tokens,
        then the summaries in the same way, until one summary is left: the summary of the session, of rank 1,
        with the session's id. Only summaries of changed messages are written again.

        Each group is one call of the summarizer. If a call fails, a warning is logged, the stored summaries
        stay unchanged, and the next run continues from there.

        Args:
            id: The session: any conversation of the owner; by default the current session.
            by: Group messages in the order of storing ("session"), or thread by thread ("thread"). By default
                the grouping of the last run, at first "session".
            progress: Called after each summary with the number of written summaries and the expected number;
                a run that continues a failed run counts from the beginning.

        Returns:
            The summary of the session; `None` if a summary could not be written, or no message is left to
            summarise.

        Raises:
            SessionNotFoundError: The session has no messages.
            InputError: `by` is unknown, or there is no current session.
            StorageBusyError: Messages kept changing during the run.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("How warm is bread dough?", "About 25 degrees.")
            >>> summary = system.summarize_session("monday")
            >>> summary.id, summary.rank, len(summary.children_ids)
            ('monday', 1, 2)
            >>> [unit.content for unit in system.unfold(summary)]
            ['How warm is bread dough?', 'About 25 degrees.']
        """
        return summaries_verbs.summarize_session(self._summarising(progress), self._session_named(id), by)

    asummarize_session = averb(summarize_session)

    @verb
    def summarize_thread(
        self, node_id: int, *, session: str | None = None, progress: Progress | None = None
    ) -> Flow[MemoryUnit | None]:
        """Update the summaries of one thread; the summaries of other threads do not change.

        The summaries are those of `summarize_session(by="thread")`, which uses them in its next run; until
        then the summaries above them are stale.

        Args:
            node_id: The id of any node of the thread. Messages that threads share belong to the oldest
                thread; of a later thread the messages after its fork are summarised.
            session: As `id` for `summarize_session`.
            progress: As for `summarize_session`.

        Returns:
            The topmost summary of the thread; `None` if a summary could not be written.

        Raises:
            SessionNotFoundError: The session has no messages.
            NodeNotFoundError: The session has no such node.
            InputError: The session is grouped by "session", the message was superseded, or there is no
                current session.
            StorageBusyError: Messages kept changing during the run.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> memory = system.conversation("monday")
            >>> baking = memory.append("How warm is bread dough?", "About 25 degrees.")
            >>> travel = memory.append("When does the ferry leave?", "At nine.")
            >>> node = memory.place(travel[0].id, None)
            >>> summary = system.summarize_thread(memory.roots()[1].id, session="monday")
            >>> [unit.content for unit in system.unfold(summary)]
            ['When does the ferry leave?', 'At nine.']
        """
        name = self._session_named(session)
        return summaries_verbs.summarize_thread(self._summarising(progress), name, node_id)

    asummarize_thread = averb(summarize_thread)

    @verb
    def summarize_long_term_memory(self, *, progress: Progress | None = None) -> Flow[MemoryUnit | None]:
        """Update the summaries of every session, and the summaries above them.

        The summaries of the sessions are grouped like messages, until one summary is left: the summary of the
        long-term memory, of rank 2, whose id is the owner's name.

        Args:
            progress: As for `summarize_session`; the expected number grows from session to session.

        Returns:
            The summary of the long-term memory; `None` if a summary could not be written, or there are no
            messages.

        Example:
            >>> system = MemorySystem(owner="ada", embeddings=False)
            >>> for name in ("monday", "tuesday"):
            ...     nodes = system.conversation(name).append(f"It is {name}.", "Noted.")
            >>> summary = system.summarize_long_term_memory()
            >>> summary.id, summary.rank, summary.children_ids
            ('ada', 2, ('monday', 'tuesday'))
        """
        return summaries_verbs.summarize_long_term_memory(self._summarising(progress))

    asummarize_long_term_memory = averb(summarize_long_term_memory)

    def _summarising(self, progress: Progress | None) -> Summarising:
        return Summarising(self.runtime, self.summarizer, self._limits, progress)

    @verb
    def unfold(
        self, unit: MemoryUnit | Recollection | str, *, levels: int | None = None
    ) -> Flow[list[MemoryUnit]]:
        """The units that a summary covers, in order: by default the messages.

        Args:
            unit: A summary, a hit of `ChatMemory.recall`, or the id of a unit. A message covers itself.
            levels: Number of levels to go down; 1 for the units that the summary was written from.

        Raises:
            UnitNotFoundError: There is no such unit.
            InputError: `levels` is negative, or messages of several sessions have the id.

        Example:
            >>> system = MemorySystem(embeddings=False, settings={"max_group_size": 2})
            >>> nodes = system.conversation("monday").extend(["one", "two", "three"])
            >>> root = system.summarize_session("monday")
            >>> [len(unit.children_ids) for unit in system.unfold(root, levels=1)]
            [2, 1]
            >>> [unit.content for unit in system.unfold("monday")]
            ['one', 'two', 'three']
        """
        return unfold.unfold(self.runtime, unit, levels)

    aunfold = averb(unfold)

    # Removal

    @verb
    def forget(
        self,
        percentage: float | None = None,
        *,
        max_units: int | None = None,
        until_below: bool = False,
        purge: bool = False,
        scorer: Scorer | None = None,
    ) -> Flow[Forgotten]:
        """Remove the least important units from memory: queries do not find them, and history keeps them.

        Units are forgotten in the order of their last visit, then of their number of visits, then of their
        age. Units added with `never_delete`, summaries of units that are left, and the topmost summaries of
        sessions and of the owner are exempt. After every `settings.saving_interval` additions, `add_memory`
        forgets units once if there are more than `settings.max_units`. Forgetting 10,000 of 100,000 units
        takes 0.2 to 0.4 s.

        Args:
            percentage: Share of the units that may be forgotten, from 0 to 1, at least one unit; by default
                that of the settings (0.10).
            max_units: Forget only if the memory has more units.
            until_below: Repeat until the memory has at most `max_units` units, by default those of the
                settings.
            purge: Remove the units from history too, with their earlier versions and everything that may
                quote them: the summaries of their conversations and of the long-term memory, which the next
                `summarize_long_term_memory` writes again. `scrub` clears their bytes from the files.
            scorer: The measure of importance, for example `maintenance.removal.scores.decay()` or
                `centrality()`.

        Returns:
            The number of forgotten units, and the number of units that are left.

        Raises:
            InputError: `percentage` is not from 0 to 1, or `max_units` is negative.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> units = [system.add_memory(f"fact number {n}") for n in range(25)]
            >>> system.forget(0.1).units, len(system.query("fact", k_limit=99, recall_context=False))
            (2, 23)
        """
        share = self.settings.forget_percentage if percentage is None else percentage
        limit = self.settings.max_units if max_units is None and until_below else max_units
        return forget.forget(
            self.runtime, share, max_units=limit, until_below=until_below, purge=purge, scorer=scorer
        )

    aforget = averb(forget)

    @verb
    def erase(self, *, conversation: str | None = None, before: datetime | None = None) -> Flow[Receipt]:
        """Erase a conversation, all messages before a time, or all data of the owner, permanently.

        Messages are erased with their words, vectors and checkpoints, and with all summaries that may quote
        them, including those of the long-term memory; `summarize_long_term_memory` writes new summaries.
        SQLite overwrites erased rows with zeros, and the log is emptied. The file is rewritten if copies of
        rows are left in its free space, or if the index of words contains messages, which takes about a
        second for 100 MB and as much free space as the file. A Chroma index of the owner, which keeps the
        bytes of removed vectors, is emptied: the next search uses SQL, and fills the index again in the
        background (half a millisecond for each vector). Data of other owners does not change.

        Args:
            conversation: The conversation to erase.
            before: Erase messages before this time (without a zone: UTC), and values of the store that were
                last changed before it; later messages of the same conversations stay. Without both
                arguments all data of the owner is erased, the store included.

        Returns:
            A receipt: the number of rows erased from each table, a list of rows that are left (empty), and
            the files that may still contain their bytes. `check_erased` checks again; `scrub` rewrites these
            files.

        Raises:
            InputError: `before` is not a datetime, or `conversation` is not text.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("My number is 555.", "Noted.")
            >>> receipt = system.erase(conversation="monday")
            >>> receipt.messages, receipt.ok, system.conversations()
            (2, True, [])
        """
        return erase.erase(self.runtime, conversation, before)

    aerase = averb(erase)

    @verb
    def check_erased(self, receipt: Receipt) -> Flow[Receipt]:
        """Check again that the erased data of a receipt is gone.

        Args:
            receipt: The result of `erase`.

        Returns:
            The receipt with the remains of the data; it is `ok` if there are none.

        Raises:
            InputError: The receipt is that of another owner.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("My number is 555.", "Noted.")
            >>> system.check_erased(system.erase(conversation="monday")).ok
            True
        """
        return erase.check(self.runtime, receipt)

    acheck_erased = averb(check_erased)

    @verb
    def scrub(self) -> Flow[Scrubbed]:
        """Rewrite the files of the memory without the bytes of deleted data.

        `reset`, `remove_session`, `forget(purge=True)` and a checkpointer's `delete_thread` remove rows and
        vectors at once. SQLite overwrites the rows, but their bytes may stay in its log and its index of
        words, and in Chroma's files, until this call. `erase` clears them by itself. The call takes about a
        second for 100 MB of database, during which no other caller can write, and empties a Chroma index,
        which is filled again in the background.

        Returns:
            The files that may still have bytes of deleted data, and the reasons: a reader of an older state,
            a full disk, or a server with files of its own.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("My number is 555.", "Noted.")
            >>> system.conversation("monday").reset()
            >>> system.scrub().ok
            True
        """
        return erase.scrub(self.runtime)

    ascrub = averb(scrub)

    # Import and maintenance

    @verb
    def import_file(
        self,
        path: str | Path | Sequence[str | Path],
        format: str | None = None,
        on_progress: Progress | None = None,
        *,
        skip_bad: bool = False,
        sort: bool = False,
        on_sort: Progress | None = None,
    ) -> Flow[ImportReport]:
        """Import the conversations of another program, with their branches, times and titles.

        The same file again adds nothing, and a later export adds its new messages and branches, and changes
        title, archive mark and active thread where nobody has changed them here. Messages are recognised by
        the ids of the export. A message with another content than before (an answer that was not complete, a
        text that was edited) becomes a new version, and the old version is superseded; messages that were
        edited or removed here stay so. An interrupted import is resumed by the same call. No selector places
        the messages. Files of any size are read in bounded memory: one conversation, and a batch of 2,000
        messages, which is one transaction.

        The content of a message is text. Thoughts, references to files and blocks of unknown types are in
        `additional_kwargs`, the model in `response_metadata`, and stars, projects and tags in the metadata of
        the conversation. Hidden messages and instructions are asides, which no model and no search sees.

        With `sort`, the conversations of the file without branches are then sorted into threads, as by
        `ChatMemory.sort`. Until then their metadata has `"sorted": False`, also after an import without
        `sort`; a later call sorts them. A sorted conversation is sorted again only if a later export adds
        messages, and messages that a person has placed stay.

        Args:
            path: A file, a folder, an archive (also with archives in it, or split into `.zip.001` and so on),
                or a list of them, which is one import.
            format: The format of all files, such as "chatgpt", "claude" or "messages" (of OpenAI or
                Anthropic, as JSON or JSON Lines); the guide has the names of all. By default each file has
                the format that all readable items of its beginning have.
            on_progress: Called after each batch with the bytes that were read and the size of the file.
            skip_bad: Whether to skip lines and items that cannot be imported.
            sort: Whether to sort conversations without branches into threads, once the file is imported.
            on_sort: Called during the sort with the number of sorted messages and the number of all.

        Returns:
            The numbers of conversations, messages and new versions, the problems of items that were skipped,
            and the numbers of sorted conversations and moved messages.

        Raises:
            InputError: The format is unknown, or a line or an item cannot be imported; the error names its
                number, and the items before it are imported. Most items of a file cannot be imported, with or
                without `skip_bad`. A file has no chats; the error names the file to import.
            PersistenceError: A file cannot be read: it is missing, damaged or encrypted.

        Example:
            >>> import json, tempfile
            >>> system = MemorySystem(embeddings=False)
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     file = Path(folder, "chat.jsonl")
            ...     _ = file.write_text(json.dumps({"role": "user", "content": "Where is Lisbon?"}))
            ...     report = system.import_file(file)
            >>> report.format, report.new_conversations, report.new_messages, system.conversations()
            ('messages', 1, 1, ['chat'])
        """
        return import_file(self.runtime, path, format, on_progress, skip_bad, sort, on_sort)

    aimport_file = averb(import_file)

    @verb
    def flush(self, progress: Progress | None = None) -> Flow[int]:
        """Embed all messages and summaries without a vector, and index the words of all messages.

        Afterwards, a search in any conversation finds all messages. Indexing takes about 0.05 ms for a
        message of 20 words, embedding several milliseconds. After a change of the embedding model, all
        messages and summaries are embedded again. An interrupted call keeps its finished batches.

        Args:
            progress: Called after each conversation that is embedded, with the number of finished
                conversations and of all.

        Returns:
            The number of messages and summaries that were embedded.

        Raises:
            EmbeddingError: The embedding model failed.
        """
        return flush(self.runtime, on_progress=progress)

    aflush = averb(flush)

    @verb
    def reindex(self) -> Flow[int]:
        """Rebuild the vector index over all conversations from the vectors in SQL.

        Returns:
            The number of vectors in the index; 0 if vectors are searched in SQL.
        """
        return reindex(self.runtime)

    areindex = averb(reindex)

    @verb
    def verify(self) -> Flow[Verification]:
        """Check the database, every node, the references of checkpoints, and the vector index against SQL.

        Reads all stored data.

        Returns:
            The result, with `ok` and `problems`; damage is reported, not raised.

        Example:
            >>> print(MemorySystem(embeddings=False).verify())
            0 conversations, 0 nodes: no problems
        """
        return verify_system(self.runtime)

    averify = averb(verify)

    @verb
    def rekey(self, cipher: Cipher) -> Flow[int]:
        """Encrypt all data of the owner with another key: messages of any state, summaries, vectors, values
        of the store, checkpoints.

        The data is read and written in transactions of 500 rows, about 0.1 ms a message with AES. This system
        reads data of both keys meanwhile, writes with the new one, and uses it afterwards. Other systems on
        the memory have to be closed before. If the call is interrupted, also by the end of the process, a
        system with the previous cipher refuses all other calls; `rekey` with the same new cipher completes
        the change.

        Args:
            cipher: The new cipher, which must detect data of another key, as authenticated ciphers do.

        Returns:
            The number of rows that were encrypted again.

        Raises:
            InputError: The memory is not encrypted, or `cipher` is not a cipher, has the present key or is
                not authenticated.

        Example:
            >>> import hmac
            >>> class Tagged:
            ...     "Shows how a cipher is called; it hides nothing."
            ...     def __init__(self, key):
            ...         self.key = key
            ...     def encrypt(self, plaintext):
            ...         return "tagged", hmac.digest(self.key, plaintext, "sha256") + plaintext[::-1]
            ...     def decrypt(self, ciphername, ciphertext):
            ...         plaintext = ciphertext[:31:-1]
            ...         if hmac.digest(self.key, plaintext, "sha256") != ciphertext[:32]:
            ...             raise ValueError("another key")
            ...         return plaintext
            >>> system = MemorySystem(embeddings=False, cipher=Tagged(b"old"))
            >>> nodes = system.conversation("monday").append("Hello", "Hi!")
            >>> system.rekey(Tagged(b"new"))
            2
            >>> system.conversation("monday").messages[0].content
            'Hello'
        """
        return rekey(self.runtime, cipher)

    arekey = averb(rekey)

    @verb
    def stats(self) -> Flow[Statistics]:
        """Count the data of the owner, and measure the database with the data of all owners.

        Reads each message of the owner and each page of an SQLite database: about 0.3 s for 200 MB.

        Returns:
            The counts of this owner, and in `database` the sizes of the database and of each table, which
            include all owners.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("How warm is bread dough?", "About 25 degrees.")
            >>> stats = system.stats()
            >>> stats.conversations, stats.messages, stats.database.owners
            (1, 2, 1)
        """
        return statistics(self.runtime)

    astats = averb(stats)

    @verb
    def reset_corrections(self) -> Flow[None]:
        """Reset the changes of selectors by corrections of the owner; the messages stay in place.

        `stats().bias` shows the changes. `erase` without arguments resets them too.

        Example:
            >>> system = MemorySystem(embeddings=False)
            >>> system.reset_corrections()
            >>> system.stats().bias.corrections
            0
        """
        return reset_corrections(self.runtime)

    areset_corrections = averb(reset_corrections)

    def close(self) -> None:
        """Finish the queued work and close the database."""
        if self._is_view:
            run(self.runtime.settle(), self.runtime)
            return
        self.resources.close()

    async def aclose(self) -> None:
        """Async `close`."""
        if self._is_view:
            await arun(self.runtime.settle(), self.runtime)
            return
        await self.resources.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()
