"""The retriever, whose documents are the hits of `ChatMemory.recall` with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from pydantic import ConfigDict, Field, model_validator

from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.langgraph._conversations import (
    ConversationScope,
    check_memory,
    memory_of_run,
    searched,
)
from langchain_threadmem.langgraph._system import shared_system
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.recall.options import Conditions
from langchain_threadmem.recall.quoting import recalled
from langchain_threadmem.recall.results import Recollection


class RetrieverOptions(TypedDict, total=False):
    """Fields of `ThreadMemRetriever` that are options of `from_conn_string`."""

    conversation_id: str | None
    scope: ConversationScope | None
    k: int
    context_depth: int
    rank: int | tuple[int, ...] | None
    include_superseded: bool
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class ThreadMemRetriever(BaseRetriever):
    """Retrieves messages and summaries that match a query, as documents, the best first.

    The `page_content` is the text of a message, after the texts of `context_depth` ancestors, or of a
    summary. The metadata are `conversation_id`, `node_id`, `message_id`, `role`, `time` (ISO 8601), `score`,
    `why`, `weak`, `rank`, and `covers` for a summary.

    Example:
        >>> memory = ChatMemory(embeddings=False)
        >>> nodes = memory.append("How do I read CSV files?", "Use pandas.read_csv.")
        >>> document = ThreadMemRetriever(memory=memory, k=1).invoke("csv")[0]
        >>> document.page_content, document.metadata["node_id"], document.metadata["why"]
        ('How do I read CSV files?', 1, 'shares csv')
    """

    memory: ChatMemory | MemorySystem
    """A conversation, or a system."""
    conversation_id: str | None = None
    """A conversation of the system; by default all conversations of the owner are searched."""
    scope: ConversationScope | None = None
    """One "conversation" or all of the "owner"; by default one if `memory` and `conversation_id` name it."""
    k: int = Field(default=4, ge=0)
    """Maximum number of documents; `invoke(query, k=...)` for another number in one call."""
    context_depth: int = Field(default=0, ge=0)
    """Number of ancestors whose texts come before the text of a message."""
    rank: int | tuple[int, ...] | None = None
    """0 for messages, 1 and 2 for summaries of conversations and of the long-term memory, or several."""
    include_superseded: bool = False
    """Whether edited, regenerated and moved messages are found."""
    owner: OwnerOfRun | None = None
    """The owner of a run: the name of a field of its context or `configurable`, or a function of the run.

    By default the owner of `memory`; a run that names another person is then refused.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    @classmethod
    def from_conn_string(
        cls, url: str | Path, *, owner: str = "user", **options: Unpack[RetrieverOptions]
    ) -> Self:
        """A retriever on the database of a URL.

        Histories, retrievers and middleware of the same URL and owner share a system, which stays open.

        Args:
            url: As for `MemorySystem`.
            owner: The owner of the memory.
            **options: `conversation_id`, `k` and the other fields.

        Example:
            >>> ThreadMemRetriever.from_conn_string("sqlite://", conversation_id="new", k=2).invoke("csv")
            []
        """
        return cls(memory=shared_system(url, owner), **options)

    @model_validator(mode="after")
    def _check(self) -> ThreadMemRetriever:
        check_memory(self.memory, self.conversation_id, self.scope, self.owner)
        return self

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The documents for a query.

        Raises:
            OwnerRequiredError: The run names no owner.
            OwnerMismatchError: The run names two owners, or another person than the owner of the memory.
        """
        return BaseRetriever.invoke(self._of_run(config), input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async `invoke`."""
        return await BaseRetriever.ainvoke(self._of_run(config), input, config, **kwargs)

    def _of_run(self, config: RunnableConfig | None) -> Self:
        """The retriever over the memory of the owner of a run."""
        memory = memory_of_run(self.memory, self.owner, ensure_config(config))
        return self if memory is self.memory else self.model_copy(update={"memory": memory, "owner": None})

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        conversation, n_results, conditions = self._call(k)
        return [
            self._document(hit)
            for hit in conversation.recall(query, n_results, self.context_depth, **conditions)
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        conversation, n_results, conditions = self._call(k)
        return [
            self._document(hit)
            for hit in await conversation.arecall(query, n_results, self.context_depth, **conditions)
        ]

    def _call(self, k: int | None) -> tuple[ChatMemory, int, Conditions]:
        conversation, scope = searched(self.memory, self.conversation_id, self.scope)
        conditions = Conditions(scope=scope, rank=self.rank, include_superseded=self.include_superseded)
        return conversation, self.k if k is None else k, conditions

    def _document(self, hit: Recollection) -> Document:
        metadata = dict(recalled(hit))
        text = str(metadata.pop("text"))
        if self.context_depth and not hit.rank:
            text = "\n".join(f"{node.message.type}: {text_of(node.message)}" for node in hit.thread)
        return Document(
            text,
            id=hit.node.message.id,
            metadata={**metadata, "weak": hit.weak, "message_id": hit.node.message.id},
        )
