"""Recall for LangChain: a retriever for chains, and a tool for agents.

Both return the hits of `ChatMemory.recall`: the retriever as documents with their source, the tool as one
fenced block of text. Neither writes to the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypedDict, Unpack

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field, model_validator

from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError
from langchain_threadmem.integrations._system import (
    check_owner,
    checked_owner,
    shared_system,
    system_of_run,
)
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.ids import check_name
from langchain_threadmem.recall.options import Conditions
from langchain_threadmem.recall.quoting import fenced, recalled
from langchain_threadmem.recall.results import Recollection

_ANY = "*"
"""Name of the conversation from which all conversations of an owner are searched; it stays empty."""


class RetrieverOptions(TypedDict, total=False):
    """Fields of `ThreadMemRetriever` without `owner`, which `from_conn_string` names."""

    conversation_id: str | None
    scope: Literal["conversation", "owner"] | None
    k: int
    context_depth: int
    rank: int | tuple[int, ...] | None
    include_superseded: bool
    name: str | None
    tags: list[str] | None
    metadata: dict[str, Any] | None


class ThreadMemRetriever(BaseRetriever):
    """Retrieves messages and summaries that fit a query, as documents, the best first.

    The `page_content` is the text of a message, after the texts of `context_depth` ancestors, or of a
    summary. The metadata are `conversation_id`, `node_id`, `message_id`, `role`, `time` (ISO 8601), `score`,
    `why`, `rank`, and `covers` for a summary.

    Example:
        >>> memory = ChatMemory(embeddings=False)
        >>> nodes = memory.append("How do I read CSV files?", "Use pandas.read_csv.")
        >>> found = ThreadMemRetriever(memory=memory, k=1).invoke("csv")[0]
        >>> found.page_content, found.metadata["node_id"], found.metadata["why"]
        ('How do I read CSV files?', 1, 'shares csv')
    """

    memory: ChatMemory | MemorySystem
    """A conversation, or a system."""
    conversation_id: str | None = None
    """A conversation of the system; by default all conversations of the owner are searched."""
    scope: Literal["conversation", "owner"] | None = None
    """One "conversation" or all of the "owner"; by default one if `memory` and `conversation_id` name it."""
    k: int = Field(default=4, ge=0)
    """Maximum number of documents; `invoke(query, k=...)` for another number in one call."""
    context_depth: int = Field(default=0, ge=0)
    """Number of ancestors whose texts come before that of a message."""
    rank: int | tuple[int, ...] | None = None
    """0 for messages, 1 and 2 for summaries of conversations and of the long-term memory, or several."""
    include_superseded: bool = False
    """Whether messages that were edited, regenerated or moved are found."""
    owner: OwnerOfRun | None = None
    """The owner of a run: the name of a field of the run's context or `configurable`, or a function of it.

    By default the owner of `memory`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

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
        _check(self.memory, self.conversation_id, self.scope, self.owner)
        return self

    def invoke(self, input: str, config: RunnableConfig | None = None, **kwargs: Any) -> list[Document]:
        """The documents for a query.

        Raises:
            OwnerRequiredError: The run names no owner.
            OwnerMismatchError: The configuration names another owner than the memory's.
        """
        return self._of_run(config)._invoke(input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async `invoke`."""
        return await self._of_run(config)._ainvoke(input, config, **kwargs)

    def _of_run(self, config: RunnableConfig | None) -> Self:
        """The retriever over the memory of the owner of a run."""
        memory = _memory(self.memory, self.owner, ensure_config(config))
        return self if memory is self.memory else self.model_copy(update={"memory": memory, "owner": None})

    def _invoke(self, input: str, config: RunnableConfig | None, **kwargs: Any) -> list[Document]:
        return super().invoke(input, config, **kwargs)

    async def _ainvoke(self, input: str, config: RunnableConfig | None, **kwargs: Any) -> list[Document]:
        return await super().ainvoke(input, config, **kwargs)

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
        conversation, scope = _conversation(self.memory, self.conversation_id, self.scope)
        conditions = Conditions(scope=scope, rank=self.rank, include_superseded=self.include_superseded)
        return conversation, self.k if k is None else k, conditions

    def _document(self, hit: Recollection) -> Document:
        metadata = dict(recalled(hit))
        text = str(metadata.pop("text"))
        if self.context_depth and not hit.rank:
            text = "\n".join(f"{node.message.type}: {text_of(node.message)}" for node in hit.thread)
        return Document(
            text, id=hit.node.message.id, metadata={**metadata, "message_id": hit.node.message.id}
        )


class _Query(BaseModel):
    query: Annotated[str, Field(description="What to look for: a question, or a few words.")]


def recall_tool(
    memory: ChatMemory | MemorySystem,
    *,
    conversation_id: str | None = None,
    scope: Literal["conversation", "owner"] | None = None,
    k: int = 4,
    owner: OwnerOfRun | None = None,
    name: str = "recall",
    description: str = "Look up what was said earlier, in this conversation or another.",
) -> BaseTool:
    """A tool with which an agent searches the memory, sync and async.

    Its result is a fenced block (see `recall.quoting`); recall does not find it, since it is a tool's result.

    Args:
        memory: A conversation, or a system.
        conversation_id: A conversation of the system; by default all conversations of the owner are searched.
        scope: One "conversation" or all of the "owner"; by default one if the two arguments above name it.
        k: Maximum number of messages and summaries.
        owner: The owner of a run: the name of a field of the run's context or `configurable`, or a function
            of the run. By default the owner of `memory`.
        name: The name of the tool for the model.
        description: The description of the tool for the model.

    Raises:
        InputError: The arguments do not name a conversation or an owner.

    Example:
        >>> memory = ChatMemory(embeddings=False)
        >>> nodes = memory.append("My cat is called Ada", "Noted.")
        >>> "My cat is called Ada" in recall_tool(memory).invoke({"query": "cat"})
        True
        >>> recall_tool(memory).invoke({"query": "weather"})
        'Nothing was said about it.'
    """
    _check(memory, conversation_id, scope, owner)

    def of_run() -> tuple[ChatMemory, Literal["conversation", "owner"]]:
        return _conversation(_memory(memory, owner, ensure_config()), conversation_id, scope)

    def find(query: str) -> str:
        conversation, where = of_run()
        return _shown(conversation.recall(query, k, 0, scope=where))

    async def afind(query: str) -> str:
        conversation, where = of_run()
        return _shown(await conversation.arecall(query, k, 0, scope=where))

    return StructuredTool.from_function(find, afind, name=name, description=description, args_schema=_Query)


def _memory(
    memory: ChatMemory | MemorySystem, owner: OwnerOfRun | None, config: Mapping[str, Any]
) -> ChatMemory | MemorySystem:
    """The memory of the owner of a run."""
    if isinstance(memory, MemorySystem):
        return system_of_run(memory, owner, config)
    check_owner(config, memory._conversation.runtime.owner)
    return memory


def _shown(hits: list[Recollection]) -> str:
    return fenced([recalled(hit) for hit in hits]) or "Nothing was said about it."


def _check(
    memory: ChatMemory | MemorySystem,
    conversation_id: str | None,
    scope: Literal["conversation", "owner"] | None,
    owner: OwnerOfRun | None,
) -> None:
    """Refuse arguments that do not name a conversation or an owner.

    Raises:
        InputError: They do not.
    """
    if isinstance(memory, ChatMemory):
        if conversation_id is not None and conversation_id != memory.conversation_id:
            raise InputError(
                f"the memory is the conversation {memory.conversation_id!r}, not {conversation_id!r}; "
                "pass the MemorySystem to choose one by its id"
            )
        if owner is not None:
            raise InputError(f"owner={owner!r} needs a MemorySystem; a ChatMemory has one owner")
        return
    if not isinstance(memory, MemorySystem):
        raise InputError(f"memory is a ChatMemory or a MemorySystem, not {memory!r}")
    if conversation_id is not None:
        check_name("a conversation_id", conversation_id)
    elif scope == "conversation":
        raise InputError("scope='conversation' needs a conversation; pass conversation_id=...")
    checked_owner(owner)


def _conversation(
    memory: ChatMemory | MemorySystem,
    conversation_id: str | None,
    scope: Literal["conversation", "owner"] | None,
) -> tuple[ChatMemory, Literal["conversation", "owner"]]:
    """The conversation whose `recall` is called, and the scope."""
    if isinstance(memory, ChatMemory):
        return memory, scope or "conversation"
    if conversation_id is None:
        return memory.conversation(_ANY), "owner"
    return memory.conversation(conversation_id), scope or "conversation"
