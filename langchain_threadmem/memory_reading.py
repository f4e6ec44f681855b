"""The verbs of `ChatMemory` that read: the thread at hand, the tree, and what is found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from langchain_core.messages import BaseMessage

from langchain_threadmem.core import tree as tree_core
from langchain_threadmem.core.nodes import ConversationNode, Recollection
from langchain_threadmem.core.wanted import Conditions, Wanted
from langchain_threadmem.flows import embedding, read, recall
from langchain_threadmem.flows.conversation import Conversation, tree_of
from langchain_threadmem.flows.steps import run

if TYPE_CHECKING:
    import networkx as nx


class ReadingVerbs:
    """What `ChatMemory` knows of the conversation; nothing here changes a message."""

    _conversation: Conversation

    @property
    def messages(self) -> list[BaseMessage]:
        """What a model is shown: the newest system message, then the active thread through the window."""
        return run(read.messages(self._conversation), self._conversation.runtime)

    @property
    def tip(self) -> ConversationNode | None:
        """The node that the active thread ends in; `None` if nothing was said yet."""
        return run(read.tip(self._conversation), self._conversation.runtime)

    @property
    def history(self) -> list[ConversationNode]:
        """Every message that was ever stored, superseded ones included, in the order of writing."""
        return run(read.everything(self._conversation), self._conversation.runtime)

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The tree as a NetworkX graph: live nodes and their ancestors, node data `{"node":
        ConversationNode}`.

        Built anew at each use, at some 20 µs a node.
        """
        return tree_core.to_graph(tree_core.living(self.history))

    def threads(self) -> list[list[ConversationNode]]:
        """Every thread from its root to its leaf, the oldest leaf first."""
        return tree_core.threads(self.history)

    def thread(self, node_id: int) -> list[ConversationNode]:
        """The nodes from the root to a node, oldest first.

        Raises:
            NodeNotFoundError: There is no such node.
        """
        return run(read.thread(self._conversation, node_id), self._conversation.runtime)

    def roots(self) -> list[ConversationNode]:
        """The nodes that continue nothing: where threads began."""
        return tree_core.roots(self.history)

    def retrieve(
        self,
        query: str,
        n_results: int = 10,
        context_depth: int | None = None,
        order: recall.Order = "chronological",
        *,
        fallback: recall.Fallback = "nothing",
    ) -> list[BaseMessage]:
        """The messages a model should be shown for a query; a linear memory gives its last ones.

        Otherwise `recall` finds them, each with its context, each message once. A tool's result never comes
        without its call.

        Args:
            query: What they are to be about.
            n_results: How many hits; context comes on top.
            context_depth: How many ancestors of each hit; `None` for the memory's default, 0 for the hits
                alone.
            order: "chronological": oldest first, threads in one piece; "relevance": the best hit first, then
                its ancestors upwards.
            fallback: What to return if nothing fits: "nothing", or the "recent" messages.

        Raises:
            InputError: A number is negative, or an option unknown.

        Example:
            >>> from langchain_threadmem import ChatMemory
            >>> memory = ChatMemory()
            >>> nodes = memory.extend(["one", ("ai", "two"), "three", ("ai", "four")])
            >>> [message.content for message in memory.retrieve("anything", n_results=3)]
            ['two', 'three', 'four']
        """
        return run(
            recall.retrieve(self._conversation, query, n_results, context_depth, order, fallback),
            self._conversation.runtime,
        )

    def recall(
        self,
        query: str,
        n_results: int = 10,
        context_depth: int | None = None,
        **conditions: Unpack[Conditions],
    ) -> list[Recollection]:
        """Find what was said, by words and by meaning, the best hit first; summaries of it too.

        The first call embeds what was said; from then on that is done in the background after each append. A
        turn of a moment ago is found by its meaning all the same: the call embeds what is missing, up to
        2,000 messages. When more is, as after a large import, it does not wait, and words alone speak for
        that: call `flush` first, or pass `wait=True`. Without an embedding model words alone decide, and a
        query that shares none with any message finds nothing. Names of people who take part
        (`message.name`), dates and times in the query count; a message's time is `additional_kwargs["time"]`
        where it can be read (ISO 8601, seconds since 1970, "8 May, 2023"), else when it was stored.

        A conversation of 2,000 messages takes 1 to 2 ms beside embedding the query.

        Args:
            query: A question, or words.
            n_results: How many hits at most.
            context_depth: How many ancestors each hit's `thread` holds; `None` for the memory's default.
            **conditions: As in `core.wanted.Wanted`: `scope` (the active "thread", this "conversation", or
                all of the "owner"), `include_superseded`, `speaker`, `role` ("human" or "ai"), `rank` (0 for
                messages, 1 and 2 for summaries of conversations and of the long-term memory, or several),
                `since` and `until` (datetimes), `half_life` (a timedelta in which odds halve), `max_tokens`
                (fill so many with whole turns that the window does not show), `reranker`, `wait` (`True`:
                embed everything first; `False`: nothing), `filters` on content, role, speaker, time, rank and
                metadata: `{"metadata.topic": "bread"}`.

        Returns:
            Hits with score, thread and reason; each node once. A summary says what it covers, and
            `MemorySystem.unfold` leads from it to the messages.

        Raises:
            InputError: A number is negative, or an option unknown.
            EmbeddingError: The embedding model failed; nothing is lost.

        Example:
            >>> from langchain_threadmem import ChatMemory
            >>> memory = ChatMemory(embeddings=False)
            >>> nodes = memory.append("How do I read CSV files?", "Use pandas.read_csv.")
            >>> hit = memory.recall("csv")[0]
            >>> hit.node.id, str(hit.why)
            (1, 'shares csv')
        """
        wanted = Wanted(n_results, **conditions)
        return run(
            recall.recall(self._conversation, query, wanted, context_depth), self._conversation.runtime
        )

    def flush(self) -> int:
        """Embed now what is not embedded yet, so that no recall has to; how many messages and summaries that
        were.

        Call it after an import, off the reply's path. An interrupted one goes on where it was.
        """
        runtime = self._conversation.runtime
        return run(embedding.flush(runtime, run(tree_of(self._conversation), runtime)), runtime)
