"""`MemorySystem`: one owner's conversations in one database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from langchain_threadmem.background import Background
from langchain_threadmem.core.english import ENGLISH
from langchain_threadmem.core.grouping import Limits, count_tokens
from langchain_threadmem.core.language import Language
from langchain_threadmem.core.names import check_name
from langchain_threadmem.flows.embedding import Progress, flush
from langchain_threadmem.flows.extractive import ExtractiveSummarizer
from langchain_threadmem.flows.index import reindex
from langchain_threadmem.flows.indexes import Indexes
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.steps import arun, run
from langchain_threadmem.flows.summarize import LLMSummarizer, Summarizer
from langchain_threadmem.flows.verify import Verification, verify_system
from langchain_threadmem.memory import ChatMemory
from langchain_threadmem.settings import MemorySettings
from langchain_threadmem.storage.queries import trees
from langchain_threadmem.system_sessions import SessionVerbs
from langchain_threadmem.system_summaries import SummaryVerbs

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from langchain_core.embeddings import Embeddings

    from langchain_threadmem.flows.model import Model
    from langchain_threadmem.storage.sealing import Cipher
    from langchain_threadmem.storage.vectors import VectorIndex


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


class MemorySystem(SessionVerbs, SummaryVerbs):
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
            `core.language` for plain words in any script. Another name is another index, made at the next
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
        InputError: The URL, the owner, a setting, the cipher or the size of the pool cannot be used.
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
        self.summarizer = summarizer or (ExtractiveSummarizer() if model is None else LLMSummarizer(model))
        self._limits = Limits(self.settings.max_group_size, self.settings.max_token_count, token_counter)
        self._background = Background()
        self.runtime = Runtime.open(
            url,
            owner=owner,
            embeddings=embeddings,
            cipher=cipher,
            pool_size=pool_size,
            max_overflow=max_overflow,
            read_only=read_only,
        )
        self.runtime.get(Indexes).configure(
            vectors, language or ENGLISH, self.settings.embedding_history_length
        )

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

    def conversation(self, conversation_id: str, **options: Any) -> ChatMemory:
        """A conversation of this owner; it begins to exist with its first message.

        Args:
            conversation_id: Its name: a LangGraph `thread_id`, a `session_id`.
            **options: As for `ChatMemory`; `context_depth` is that of the settings.

        Raises:
            InputError: The name is no text, or an option is out of its range.
        """
        check_name("a conversation_id", conversation_id)
        chosen = {"context_depth": self.settings.context_depth, **options}
        return ChatMemory(system=self, conversation_id=conversation_id, **chosen)

    def conversations(self) -> list[str]:
        """The names of the conversations that hold anything, the oldest first."""
        return [name for name, _ in self.runtime.database.read(lambda c: trees.conversations(c, self.owner))]

    async def aconversations(self) -> list[str]:
        """Async `conversations`."""
        found = await self.runtime.database.aread(lambda c: trees.conversations(c, self.owner))
        return [name for name, _ in found]

    def verify(self) -> Verification:
        """Check the database, every node of every conversation, that checkpoints lead to nodes, and that the
        vector index holds what SQL says; `.ok` and `.problems` say what was found. Damage of any kind is
        reported, never raised. Reads all that is stored.
        """
        return run(verify_system(self.runtime), self.runtime)

    async def averify(self) -> Verification:
        """Async `verify`."""
        return await arun(verify_system(self.runtime), self.runtime)

    def flush(self, progress: Progress | None = None) -> int:
        """Embed now what is not embedded yet in any conversation, so that no recall has to.

        After a change of the embedding model this embeds everything anew. What was embedded is kept batch by
        batch: an interrupted flush goes on where it was.

        Args:
            progress: Called after each conversation with how many of how many are done.

        Returns:
            How many messages were embedded.
        """
        return run(flush(self.runtime, told=progress), self.runtime)

    async def aflush(self, progress: Progress | None = None) -> int:
        """Async `flush`."""
        return await arun(flush(self.runtime, told=progress), self.runtime)

    def reindex(self) -> int:
        """Build the owner-wide vector index again from SQL; nothing is embedded again.

        Returns:
            How many vectors the index holds; 0 if SQL serves instead.
        """
        return run(reindex(self.runtime), self.runtime)

    async def areindex(self) -> int:
        """Async `reindex`."""
        return await arun(reindex(self.runtime), self.runtime)

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
