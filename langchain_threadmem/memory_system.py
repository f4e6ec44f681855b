"""`MemorySystem`: all conversations of one owner in one database.

Each method is a flow that `verb` runs in the calling thread and `averb` on the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack
from uuid import uuid4

from langchain_core.messages import BaseMessage

from langchain_threadmem.catalogue import verbs as catalogue
from langchain_threadmem.catalogue.verbs import Archived, ConversationInfo, Page
from langchain_threadmem.chat_memory import ChatMemory, ConversationOptions
from langchain_threadmem.common.usage import Usage
from langchain_threadmem.common.workers import Background
from langchain_threadmem.engine.flow import Flow, Sql, averb, verb
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.filters.store import Filter
from langchain_threadmem.index.catch_up import reindex
from langchain_threadmem.index.embed import Progress, flush
from langchain_threadmem.index.indexes import Indexes
from langchain_threadmem.index.language import ENGLISH, Language
from langchain_threadmem.long_term import query, sessions
from langchain_threadmem.long_term.external import ExternalCollection
from langchain_threadmem.long_term.query import QueryOptions
from langchain_threadmem.long_term.sources import Sources
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.recall import unfold
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.removal import erase, forget
from langchain_threadmem.removal.erase import Receipt, Scrubbed
from langchain_threadmem.removal.forget import Forgotten
from langchain_threadmem.removal.reset import Cascade
from langchain_threadmem.removal.scores import Scorer
from langchain_threadmem.settings import MemorySettings
from langchain_threadmem.summaries import verbs as summaries_verbs
from langchain_threadmem.summaries.grouping import Limits, count_tokens
from langchain_threadmem.summaries.run import By, Summarising
from langchain_threadmem.summaries.summarizers import (
    ExtractiveSummarizer,
    LLMSummarizer,
    Summarizer,
    check_summarizer,
)
from langchain_threadmem.tree import trees
from langchain_threadmem.units.unit import MemoryUnit
from langchain_threadmem.verify import Verification, verify_system

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from langchain_core.embeddings import Embeddings

    from langchain_threadmem.engine.chat_model import Model
    from langchain_threadmem.index.vector_index import VectorIndex
    from langchain_threadmem.storage.encryption import Cipher


class SystemOptions(TypedDict, total=False):
    """The options of `MemorySystem`."""

    owner: str
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
    """Everything one owner has said, in as many conversations as there were.

    Nothing that one owner has stored is ever shown to another, even in the same database.

    The database is opened at once. Where an event loop is running, the first call opens it, so that nothing
    blocks the loop; what is wrong with it is raised then. `await MemorySystem.aopen(...)` opens it first.
    After `os.fork()` parent and child both go on, with connections of their own; of a database in memory the
    child has a copy.

    Args:
        url: `sqlite:///memory.db` or a path, `postgresql://user@host/name`, or `None` to live in memory. A
            database may hold tables of others: those of this package, which are made if they are not there,
            have names that begin with `threadmem_`.
            `sqlite:///memory.db?synchronous=FULL` waits for the disk at every turn; the default survives the
            death of the process, not a power cut. `postgresql://user@host/name?pool_size=20&max_overflow=0`
            says how many connections there may be.
        owner: Whose memory it is.
        embeddings: A LangChain embedding model; `None` for the local one where its files are at hand, `False`
            for none. Nothing is embedded before something needs it.
        vectors: Where search over all conversations happens: a directory for Chroma, the URL of a Chroma
            server (`http://host:8000`, `https://TOKEN@host`), a Chroma client, or an index of one's own. By
            default memory while there are fewer than 20,000 vectors, then Chroma in a directory beside the
            database file.
        settings: `MemorySettings`, a mapping of its fields, or the path of a TOML, YAML or JSON file.
        cipher: Encrypts what is said before it reaches the database, with summaries, vectors and values of
            a `ThreadMemStore`: an object with `encrypt` and `decrypt` as in LangGraph's
            `EncryptedSerializer(cipher)`. What is not encrypted is refused then, no index on disk holds any
            words, and recall stays within a conversation. Names, keys, ids, roles, times and lengths can
            still be seen.
        language: How recall reads words: stems, stop words, times; `None` for English, `PLAIN` of
            `index.language` for plain words in any script. Another name is another index, made at the next
            recall.
        model: A chat model, or the name of one for `ChatOpenAI`, that writes summaries of sessions; without
            one, summaries are sentences taken from what was said.
        summarizer: What writes them instead: an `LLMSummarizer`, an `ExtractiveSummarizer`, or your own.
        token_counter: Counts the tokens of a text for `max_token_count`; by default one for each character,
            which no tokenizer exceeds.
        pool_size: How many connections to PostgreSQL are kept open, by default 5. Callers that find none free
            wait; async ones share one for writing and a few for reading, so that any number of them may call.
        max_overflow: How many more may be open while they are needed, by default 10.
        read_only: Look only: nothing is written to the database, every verb that would fails, and a database
            that is not there, holds no memory or would have to be migrated is refused.

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
        owner: str = "user",
        embeddings: Embeddings | Literal[False] | None = None,
        vectors: str | Path | ClientAPI | VectorIndex | None = None,
        settings: MemorySettings | Mapping[str, Any] | str | Path | None = None,
        cipher: Cipher | None = None,
        language: Language | None = None,
        model: Model | None = None,
        summarizer: Summarizer | None = None,
        token_counter: Callable[[str], int] = count_tokens,
        pool_size: int | None = None,
        max_overflow: int | None = None,
        read_only: bool = False,
    ) -> None:
        self.settings = MemorySettings.of(settings)
        if summarizer is None:
            summarizer = ExtractiveSummarizer() if model is None else LLMSummarizer(model)
        if not callable(token_counter):
            raise InputError(f"token_counter={token_counter!r} cannot count; pass a function text -> int")
        self.summarizer = check_summarizer(summarizer)
        """The summarizer of sessions and of the long-term memory."""
        self._limits = Limits(self.settings.max_group_size, self.settings.max_token_count, token_counter)
        self._background = Background()
        self._session: str | None = None
        self._added = 0
        self.runtime = self._runtime = Runtime.open(
            url,
            owner=owner,
            embeddings=embeddings,
            cipher=cipher,
            pool_size=pool_size,
            max_overflow=max_overflow,
            read_only=read_only,
        )
        try:
            self.runtime.get(Indexes).configure(
                vectors, ENGLISH if language is None else language, self.settings.embedding_history_length
            )
        except InputError:
            self.runtime.database.close()
            raise

    @classmethod
    async def aopen(cls, url: str | Path | None = None, **options: Unpack[SystemOptions]) -> Self:
        """A system whose database is open, made without blocking the event loop.

        Args:
            url: As for `MemorySystem`.
            **options: As for `MemorySystem`.

        Raises:
            InputError: An argument cannot be used.
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
        """Whose memory it is."""
        return self.runtime.owner

    @property
    def usage(self) -> Usage:
        """Model calls and tokens since the memory was opened, by purpose and conversation.

        Counted is what the selectors and summarizers of this package ask, and what `create_threaded_chat`
        answers.
        """
        return self.runtime.usage

    # Conversations and sessions

    def conversation(self, conversation_id: str, **options: Unpack[ConversationOptions]) -> ChatMemory:
        """A conversation of this owner; it begins to exist with its first message.

        Args:
            conversation_id: Its name: a LangGraph `thread_id`, a `session_id`.
            **options: As for `ChatMemory`; `context_depth` is that of the settings.

        Raises:
            InputError: The name is no text, or an option is out of its range.
        """
        check_name("a conversation_id", conversation_id)
        options.setdefault("context_depth", self.settings.context_depth)
        return ChatMemory(system=self, conversation_id=conversation_id, **options)

    @verb
    def conversations(self) -> Flow[list[str]]:
        """The names of the conversations that hold anything, the oldest first."""
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
        """The conversations of the owner with titles, previews and metadata, that used last first.

        A title is the one that was set, or that of the conversation's summary (which a model writes where
        one is set), or the most important words of the opening. Some 20 ms for a page of 50 among 10,000.

        Args:
            query: Only conversations in which the messages hold each of these words, or whose title or id
                contains the text. What is encrypted is found by title and id alone.
            metadata: Only conversations whose metadata passes the filter, such as `{"folder": "work"}` or
                `{"stars": {"$gte": 3}}`.
            since: Only conversations with a message from this time on; a time without a zone is UTC.
            limit: How many conversations at most.
            cursor: `cursor` of the page before; `None` for the first page.
            archived: `False` leaves archived conversations out, `True` lists these alone, "both" all.

        Returns:
            A list with the attribute `cursor`, which is `None` on the last page.

        Raises:
            InputError: An argument cannot be used.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("c1").append("How do I bake bread?", "With patience.")
            >>> [(found.id, found.title, found.messages) for found in system.list_conversations()]
            [('c1', 'Bake, bread', 2)]
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
            title: The new title; "" for one made from the opening again, `None` to leave it.
            metadata: A JSON object that replaces the metadata; `None` to leave it.
            archived: Whether the conversation is archived; `None` to leave it as it is.

        Returns:
            The conversation as `list_conversations` shows it.

        Raises:
            SessionNotFoundError: There is no such conversation.
            InputError: An argument cannot be stored.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("c1").append("How do I bake bread?", "With patience.")
            >>> system.update_conversation("c1", title="Bread", metadata={"stars": 3}).title
            'Bread'
        """
        return catalogue.update_conversation(self.runtime, conversation_id, title, metadata, archived)

    aupdate_conversation = averb(update_conversation)

    @property
    def session_id(self) -> str | None:
        """The session at hand, if there is one."""
        return self._session

    @verb
    def start_session(self, id: str | None = None) -> Flow[str]:
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
        self._session = None if id is None else (yield from sessions.resume(self.runtime, id))
        return self._current_session()

    astart_session = averb(start_session)

    @verb
    def switch_session(self, id: str) -> Flow[str]:
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
            self._session = yield from sessions.switch(self.runtime, id)
        return self._session

    aswitch_session = averb(switch_session)

    @verb
    def remove_session(self, id: str, *, cascade: Cascade = "stale") -> Flow[None]:
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
        yield from sessions.remove(self.runtime, id, cascade)
        if self._session == id:
            self._session = None

    aremove_session = averb(remove_session)

    @verb
    def sessions(self) -> Flow[list[str]]:
        """The sessions in which something was said, the oldest first, and the one at hand."""
        rows = yield from Sql(lambda conn: trees.conversations(conn, self.owner))
        names = [name for name, _ in rows]
        current = self._session
        return names if current is None or current in names else [*names, current]

    asessions = averb(sessions)

    def _current_session(self) -> str:
        """The current session; a new one if there is none."""
        self._session = self._session or str(uuid4())
        return self._session

    def _session_named(self, id: str | None) -> str:
        """A session by its id, by default the current one."""
        chosen = self._session if id is None else id
        if chosen is None:
            raise InputError("there is no session at hand; pass the id of one, sessions() lists them")
        check_name("a session id", chosen)
        return chosen

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
        session = self._current_session()
        unit = yield from sessions.add(
            self.runtime, session, content, source, creation_time, metadata, never_delete
        )
        self._added += 1
        most, interval = self.settings.max_units, self.settings.saving_interval
        if most and self._added % interval == 0:
            yield from forget.when_full(self.runtime, most, self.settings.forget_percentage)
        return unit

    aadd_memory = averb(add_memory)

    @verb
    def get_context(self, length: int | None = None) -> Flow[list[MemoryUnit]]:
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
        most = self.settings.max_context_length
        if not (length is None or hasattr(length, "__index__")):
            raise InputError(f"length={length!r} is no number; pass how many messages to show")
        shown = most if length is None else min(length, most)
        return sessions.context(self.runtime, self._session, shown)

    aget_context = averb(get_context)

    @verb
    def query(self, text: str | None = None, **options: Unpack[QueryOptions]) -> Flow[list[list[MemoryUnit]]]:
        """Find messages and summaries that fit a question, in all sessions of the owner.

        Hits in short-term memory that are similar enough come first, then those in long-term memory; each
        counts as a visit, which keeps it from being forgotten. Without embeddings, words are compared.

        Args:
            text: What is asked.
            query_vector: The same as a vector of the memory's model; it counts instead of the text.
            filters: Which units count: `{"source": {"$eq": "ai"}}` with `$eq $ne $gt $gte $lt $lte $in $nin
                $contains $like $and $or $not`, or `[("source", "==", "ai"), ...]`, over the fields of
                `MemoryUnit` and the keys of its metadata (`metadata.topic`).
            k_limit: How many hits at most, their neighbours not counted; by default 5.
            search_range: The lowest and highest cosine of a hit, each `None` for no limit; by default
                none, and hits are ranked as `ChatMemory.recall` ranks them. No effect without embeddings.
            recall_context: Whether the messages before and after a hit come with it; by default they do.
            add_ltm_to_stm: Whether hits from elsewhere enter short-term memory; by default they do.
            query_external_first: Whether external hits come before one's own; by default they do.
            short_term_only: Look into short-term memory alone.
            long_term_only: Look into long-term memory alone.
            external_only: Look into external collections alone.
            threshold_for_stm_before_ltm: From which cosine on a hit in short-term memory comes first; by
                default 0.8.
            compat_k: Take a third of `k_limit` where neighbours come along, as MemForest does.

        Returns:
            Chains, the best first: each holds hits that follow each other, between their neighbours. Defaults
            are those of `settings`.

        Raises:
            InputError: Arguments contradict each other, a filter means nothing, a vector has another length.
            EmbeddingError: The text could not be embedded.

        Example:
            >>> from langchain_threadmem import MemorySystem
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
        """Keep the units used last at hand, with their vectors; `query` looks there first.

        Every unit that is added enters, and so does what a query finds elsewhere. If it is enabled already,
        its capacity changes and what fits stays.

        Args:
            capacity: How many units; by default that of the settings (200).
            restore_session_id: A session whose newest units enter at once; "LATEST" for the one in which
                something was said last.

        Raises:
            InputError: The capacity is no whole number from 1 up.
            SessionNotFoundError: There is no such session.

        Example:
            >>> from langchain_threadmem import MemorySystem
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
        """Let short-term memory go; nothing that was in it is lost."""
        self.runtime.get(Sources).short_term = None
        yield from ()

    adisable_stm = averb(disable_stm)

    def connect_external(self, collection: Collection) -> None:
        """Let queries look into a Chroma collection too, of whatever shape; it is read and never written.

        Args:
            collection: The collection, best got with `embedding_function=None`: it is always asked with
                vectors of this memory's model, so it has to be made with the same one. One with the name of a
                collection that is connected takes its place.

        Raises:
            InputError: It is no collection.
        """
        fresh = ExternalCollection(collection)
        self.runtime.get(Sources).external = [
            *(other for other in self.runtime.get(Sources).external if other.name != fresh.name),
            fresh,
        ]

    def disconnect_external(self) -> None:
        """Let queries look into no external collection any more."""
        self.runtime.get(Sources).external = []

    @verb
    def unit(self, id: str, *, session: str | None = None) -> Flow[MemoryUnit]:
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
        return unfold.named(self.runtime, id, session)

    aunit = averb(unit)

    # Summaries

    @verb
    def summarize_session(
        self, id: str | None = None, *, by: By | None = None, progress: Progress | None = None
    ) -> Flow[MemoryUnit | None]:
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
        return summaries_verbs.summarize_session(self._summarising(progress), self._session_named(id), by)

    asummarize_session = averb(summarize_session)

    @verb
    def summarize_thread(
        self, node_id: int, *, session: str | None = None, progress: Progress | None = None
    ) -> Flow[MemoryUnit | None]:
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
        name = self._session_named(session)
        return summaries_verbs.summarize_thread(self._summarising(progress), name, node_id)

    asummarize_thread = averb(summarize_thread)

    @verb
    def summarize_long_term_memory(self, *, progress: Progress | None = None) -> Flow[MemoryUnit | None]:
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
        return summaries_verbs.summarize_long_term_memory(self._summarising(progress))

    asummarize_long_term_memory = averb(summarize_long_term_memory)

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

    def _summarising(self, progress: Progress | None) -> Summarising:
        return Summarising(self.runtime, self.summarizer, self._limits, progress)

    @verb
    def unfold(
        self, unit: MemoryUnit | Recollection | str, *, levels: int | None = None
    ) -> Flow[list[MemoryUnit]]:
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
        """Let the least important units leave memory: they are not found any more, and stay in history.

        Units go in the order of their last visit, then of their number of visits, then of their age. Exempt
        are units added with `never_delete`, summaries while anything is left of what they cover, and the
        topmost summary of a session and of the owner. `add_memory` does the same by itself, one pass at a
        time, when there are more than `settings.max_units`; it looks after every `settings.saving_interval`
        additions. 10,000 of 100,000 units take about half a second.

        Args:
            percentage: Which share of the units that may go does, from 0 to 1, at least one; by default that
                of the settings (0.10).
            max_units: Do so only if the memory holds more units than this.
            until_below: Go on, pass after pass, until it does not; `max_units` is then by default that of the
                settings.
            purge: Remove them for good, from history too; `scrub` clears their bytes from the files.
            scorer: Who says what is important, for example `removal.scores.decay` or `centrality()`.

        Returns:
            How many were forgotten, and how many are left.

        Raises:
            InputError: `percentage` is not from 0 to 1.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> units = [system.add_memory(f"fact number {n}") for n in range(25)]
            >>> system.forget(0.1).units, len(system.query("fact", k_limit=99, recall_context=False))
            (2, 23)
        """
        share = self.settings.forget_percentage if percentage is None else percentage
        above = self.settings.max_units if max_units is None and until_below else max_units
        return forget.forget(
            self.runtime, share, above=above, until_below=until_below, purge=purge, scorer=scorer
        )

    aforget = averb(forget)

    @verb
    def erase(self, *, conversation: str | None = None, before: datetime | None = None) -> Flow[Receipt]:
        """Erase for good: a conversation, what was said before a time, or everything of the owner.

        Messages go with their words, vectors, checkpoints, and with all summaries that may quote them, those
        of the long-term memory among them; `summarize_long_term_memory` makes new ones of what is left. The
        database file is written anew, which takes about a second for 100 MB and as much free space as the
        file, so that none of its bytes hold what was erased. A Chroma index of the owner is emptied, since it
        keeps the bytes of what is removed: the next search goes through SQL, and begins to fill it again in
        the background (half a millisecond for each vector). Other owners keep everything.

        Args:
            conversation: Only this conversation.
            before: Only what was said before this time (without a zone: UTC), and values of the store that
                were last changed before it. Of a conversation that goes on, what was said later stays.
                Without either, everything of the owner goes, the store too.

        Returns:
            A receipt: how many rows of each table went, what was found to be left (nothing), and which files
            may still hold bytes of it. `check_erased` looks again; `scrub` writes these files anew.

        Raises:
            InputError: `before` is no time, `conversation` no text.

        Example:
            >>> from langchain_threadmem import MemorySystem
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
        """A receipt of `erase` with what is there now of what it says is gone; `ok` if that is nothing.

        Raises:
            InputError: It is the receipt of another owner.
        """
        return erase.check(self.runtime, receipt)

    acheck_erased = averb(check_erased)

    @verb
    def scrub(self) -> Flow[Scrubbed]:
        """Write the files of the memory anew, so that they hold no bytes of what was deleted.

        `reset`, `remove_session`, `forget(purge=True)` and a checkpointer's `delete_thread` remove rows and
        vectors at once, and leave their bytes in the free pages of the database file and in Chroma's files,
        as every deletion of a database does. `erase` scrubs by itself. This takes about a second for 100 MB
        of database, in which nobody else can write, and empties a Chroma index, which is filled again in the
        background.

        Returns:
            Which files may still hold bytes of what was deleted, and why: somebody was reading an older
            state, the disk was full, or a server looks after its files itself.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("My number is 555.", "Noted.")
            >>> system.conversation("monday").reset()
            >>> system.scrub().ok
            True
        """
        return erase.scrub(self.runtime)

    ascrub = averb(scrub)

    # Maintenance

    @verb
    def flush(self, progress: Progress | None = None) -> Flow[int]:
        """Embed now what is not embedded yet in any conversation, so that no recall has to.

        After a change of the embedding model this embeds everything anew. What was embedded is kept batch by
        batch: an interrupted flush goes on where it was.

        Args:
            progress: Called after each conversation with how many of how many are done.

        Returns:
            How many messages were embedded.
        """
        return flush(self.runtime, on_progress=progress)

    aflush = averb(flush)

    @verb
    def reindex(self) -> Flow[int]:
        """Build the owner-wide vector index again from SQL; nothing is embedded again.

        Returns:
            How many vectors the index holds; 0 if SQL serves instead.
        """
        return reindex(self.runtime)

    areindex = averb(reindex)

    @verb
    def verify(self) -> Flow[Verification]:
        """Check the database, every node of every conversation, that checkpoints lead to nodes, and that the
        vector index holds what SQL says; `.ok` and `.problems` say what was found. Damage of any kind is
        reported, never raised. Reads all that is stored.
        """
        return verify_system(self.runtime)

    averify = averb(verify)

    def close(self) -> None:
        """Finish what is queued and close the database; everything acknowledged is stored already."""
        self._background.close()
        self.runtime.close()

    async def aclose(self) -> None:
        """Async `close`."""
        await asyncio.to_thread(self._background.close)
        await self.runtime.aclose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()
