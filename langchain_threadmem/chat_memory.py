"""`ChatMemory`: one conversation, stored as a tree.

Each method is a flow that `verb` runs in the calling thread and `averb` on the event loop. Each call reads
the messages from the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, get_args
from uuid import uuid4

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.inputs import Progress, check_no_class, check_one_of
from langchain_threadmem.engine.flow import Flow, Steps, arun, averb, run, verb
from langchain_threadmem.engine.owners import Run, check_person
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError
from langchain_threadmem.formats.exporters import files, formats, mermaid
from langchain_threadmem.formats.exporters.mermaid import MermaidOptions
from langchain_threadmem.index.owner_index import flush
from langchain_threadmem.long_term.lists import verbs as catalogue
from langchain_threadmem.long_term.lists.verbs import Page, ThreadInfo
from langchain_threadmem.maintenance.removal import erase, forget
from langchain_threadmem.maintenance.verify import Verification, verify_conversation
from langchain_threadmem.messages.codec import MessageInput
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.windows import Window, bound, check_window
from langchain_threadmem.recall import verbs as recall_verbs
from langchain_threadmem.recall.instructions import standing
from langchain_threadmem.recall.instructions.standing import Instruction
from langchain_threadmem.recall.options import Conditions, RecallOptions, check_context_depth
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.selection import append, coverage
from langchain_threadmem.selection.coverage import check_cover
from langchain_threadmem.selection.llm_selector import LLMNodeSelector
from langchain_threadmem.selection.moves import corrections, sort
from langchain_threadmem.selection.moves.corrections import Doubt
from langchain_threadmem.selection.moves.sort import Move
from langchain_threadmem.selection.run_selector import COVER, COVER_TOKENS, ThreadedConversation
from langchain_threadmem.selection.selectors import (
    AnySelector,
    LinearNodeSelector,
    NodeSelector,
    SemanticNodeSelector,
)
from langchain_threadmem.selection.tree_view import OnFailure
from langchain_threadmem.summaries import verbs as summary_verbs
from langchain_threadmem.summaries.summarizers import LLMSummarizer, Summarizer, check_summarizer
from langchain_threadmem.tree import graph, navigate, read, revise
from langchain_threadmem.tree.conversation import tree_of
from langchain_threadmem.tree.navigate import MessageRef
from langchain_threadmem.tree.node import ConversationNode

if TYPE_CHECKING:
    import networkx as nx
    from langchain_core.embeddings import Embeddings

    from langchain_threadmem.engine.chat_model import Model
    from langchain_threadmem.memory_system import MemorySystem


class SelectionOptions(TypedDict, total=False):
    """Options of `ChatMemory` for the place of a message in the tree."""

    single_tree: bool
    on_selection_failure: OnFailure
    cover: float | None
    cover_tokens: int | None
    heal: bool


class ThreadOptions(SelectionOptions, total=False):
    """Options of `ChatMemory` for the place of a message and the part of a thread that a model is shown."""

    window: Window | None


class ConversationOptions(ThreadOptions, total=False):
    """Options of `ChatMemory` for a conversation whose system and name are known."""

    node_selector: AnySelector | None
    summarizer: Summarizer | None
    context_depth: int


class ChatMemoryOptions(ConversationOptions, total=False):
    """Options of `ChatMemory`."""

    system: MemorySystem | None
    conversation_id: str | None
    embeddings: Embeddings | Literal[False] | None


def check_options(**options: Unpack[ConversationOptions]) -> None:
    """Refuse options of a conversation that have the wrong type or are out of their range.

    Raises:
        InputError: An option has the wrong type or is out of its range.
        TypeError: There is no option with this name.
    """
    for name in options.keys() - ConversationOptions.__annotations__.keys():
        raise TypeError(f"a conversation has no option {name!r}")
    check_context_depth(options.get("context_depth", 0))
    if (summarizer := options.get("summarizer")) is not None:
        check_summarizer(summarizer)
    check_one_of("on_selection_failure", options.get("on_selection_failure", "latest"), get_args(OnFailure))
    check_cover(options.get("cover", COVER), options.get("cover_tokens", COVER_TOKENS))
    check_window(options.get("window"))
    selector = options.get("node_selector")
    check_no_class("node_selector", selector)
    if selector is not None and not (callable(selector) or isinstance(selector, NodeSelector)):
        raise InputError(
            f"{selector!r} is not a node selector; pass a function (tree, message) -> int | None, "
            "or an object with select_parent"
        )


class ChatMemory:
    """A conversation as a tree: each message is attached to the message it answers.

    Without arguments a memory is linear, keeps its messages in the process, and uses no model.
    `ChatMemory.semantic()` selects threads by meaning, `ChatMemory.threaded(model)` by a language model.
    Several threads and processes may use the same conversation at once.

    Args:
        node_selector: Selects the answer that a human message continues; by default a message continues the
            active thread.
        summarizer: Writes the summaries of `summarize`.
        context_depth: Number of ancestors of a hit that `retrieve` and `recall` return by default.
        window: The part of the thread that `messages` returns: a `MessageWindow`, a `TokenWindow`, or a
            function from a list of messages to a list of messages.
        system: The `MemorySystem` of the conversation; by default a new system in memory.
        conversation_id: Name of the conversation within the system; by default a new name.
        embeddings: Embedding model of a new system: `None` for the default, `False` for words alone.
        single_tree: Attach a message to the tip where the selector would begin a new root.
        on_selection_failure: Place of a message whose selector fails: after the "latest" answer, at a new
            "root", or an error ("raise").
        cover: The share of the probability that `messages` covers while a message waits for its answer: the
            turns of other threads that the message may continue are quoted in a block before it, the
            likeliest first, until they and the thread have this share. `None` shows the thread alone. Only
            selectors that give probabilities, such as `SemanticNodeSelector`, make a difference.
        cover_tokens: Maximum number of tokens of a block; `None` for half of the thread, and at least 500.
            Longer turns are cut. A window does not count them.
        heal: Whether an earlier turn is moved when its answer makes another place clearly likelier. The
            transaction that stores the next message moves it: its human message gets a new node with the
            reason "moved: the answer is about ...", and the old node is superseded. A turn that a person has
            placed, edited or checked out stays. Only selectors that give probabilities, such as
            `SemanticNodeSelector`, move turns.

    Raises:
        InputError: An option has the wrong type or is out of its range.

    Example:
        >>> memory = ChatMemory()
        >>> nodes = memory.append("Let's talk about Python", "It is great for data science.")
        >>> [(node.id, node.parent_id) for node in nodes]
        [(1, None), (2, 1)]
        >>> [message.content for message in memory.messages]
        ["Let's talk about Python", 'It is great for data science.']
    """

    def __init__(
        self,
        node_selector: AnySelector | None = None,
        summarizer: Summarizer | None = None,
        context_depth: int = 5,
        *,
        window: Window | None = None,
        system: MemorySystem | None = None,
        conversation_id: str | None = None,
        embeddings: Embeddings | Literal[False] | None = None,
        single_tree: bool = False,
        on_selection_failure: OnFailure = "latest",
        cover: float | None = COVER,
        cover_tokens: int | None = COVER_TOKENS,
        heal: bool = True,
    ) -> None:
        check_options(
            node_selector=node_selector,
            summarizer=summarizer,
            context_depth=context_depth,
            window=window,
            on_selection_failure=on_selection_failure,
            cover=cover,
            cover_tokens=cover_tokens,
        )
        name = str(uuid4()) if conversation_id is None else name_of("a conversation_id", conversation_id)
        if system is not None and embeddings is not None:
            raise InputError("embeddings belong to the system; pass them to MemorySystem(embeddings=...)")
        check_no_class("system", system)
        if not hasattr(system, "runtime") and system is not None:
            raise InputError(f"system is a MemorySystem, not {system!r}; pass MemorySystem(url)")
        self._runtime = system.runtime if system else Runtime.open(None, owner="user", embeddings=embeddings)
        self._serves_run = system is not None and system._serves_run
        self._summarizer = summarizer
        self._conversation = ThreadedConversation(
            self._runtime,
            name,
            context_depth,
            bound(window, name),
            node_selector or LinearNodeSelector(),
            single_tree,
            on_selection_failure,
            cover,
            cover_tokens,
            heal,
        )

    @classmethod
    def semantic(cls, **options: Unpack[ChatMemoryOptions]) -> Self:
        """A memory that selects threads by meaning and recency, without a language model.

        Args:
            **options: As for `ChatMemory`.

        Raises:
            InputError: An option has the wrong type or is out of its range.

        Example:
            >>> memory = ChatMemory.semantic(embeddings=False)
            >>> nodes = memory.append("How do I read a CSV file in pandas?", "Use pandas.read_csv.")
            >>> nodes = memory.append("Which wine goes with salmon?", "A dry Riesling.")
            >>> nodes = memory.append("And if the CSV file has no header?", "Pass header=None.")
            >>> nodes[0].parent_id
            2
        """
        options.setdefault("node_selector", SemanticNodeSelector())
        return cls(**options)

    @classmethod
    def threaded(cls, model: Model = "gpt-4o-mini", **options: Unpack[ChatMemoryOptions]) -> Self:
        """A memory that selects threads by a language model.

        Args:
            model: A chat model, or the name of one for `ChatOpenAI`, or with its provider, such as
                `anthropic:claude-sonnet-4-5`; first called when there is a choice.
            **options: As for `ChatMemory`; by default `node_selector` and `summarizer` use `model`.

        Raises:
            InputError: The model is not a chat model, or an option has the wrong type or is out of its range.

        Example:
            >>> from langchain_core.language_models import FakeListChatModel
            >>> answer = '{"selected_node_id": null, "reasoning": "Another subject.", "title": "Wine"}'
            >>> memory = ChatMemory.threaded(FakeListChatModel(responses=[answer]))
            >>> nodes = memory.append("How do I read a CSV file?", "Use the csv module.")
            >>> nodes = memory.append("Which wine goes with salmon?", "A dry Riesling.")
            >>> [thread.title for thread in memory.list_threads()]
            ['Wine', 'How do I read a CSV file?']
        """
        options.setdefault("node_selector", LLMNodeSelector(model))
        options.setdefault("summarizer", LLMSummarizer(model))
        return cls(**options)

    def _check_run(self, config: Mapping[str, Any] | None) -> None:
        """Refuse a run that names another person than the owner; see `MemorySystem._check_run`."""
        if not self._serves_run:
            check_person(Run(config), self._runtime.owner)

    @property
    def conversation_id(self) -> str:
        """Name of the conversation within its system."""
        return self._conversation.name

    @property
    def context_depth(self) -> int:
        """Number of ancestors of a hit that are returned by default."""
        return self._conversation.context_depth

    @property
    def node_selector(self) -> AnySelector:
        """The selector of the answer that a human message continues."""
        return self._conversation.selector

    @property
    def summarizer(self) -> Summarizer | None:
        """The summarizer of `summarize`, if there is one."""
        return self._summarizer

    # Writing

    @verb
    def append(
        self, human: MessageInput, ai: MessageInput | None = None, *more: MessageInput
    ) -> Steps[list[ConversationNode]]:
        """Store one turn: a human message and the AI and tool messages that answer it.

        The node selector selects the parent of the human message; each answer is attached to the message
        before it. A later answer is appended without a human message and is attached to the tip; a later tool
        result is attached to its call, unless the memory is linear. A system message that equals the newest
        system message is ignored.

        A message with an `id` is stored once, however often it is appended; a message without an id gets an
        id, and is stored each time. The same answer to another question, which a cache of answers returns
        with its id, is stored with an id of its own, and a warning is logged.

        Args:
            human: A message in any form that LangChain accepts, or a list of messages; text is a human
                message.
            ai: The answer, in the same forms; text is an AI message.
            *more: Further answers and tool results of the same turn.

        Returns:
            The nodes, in order. They are durable when the call returns.

        Raises:
            InputError: The messages are not one turn, or are empty.
            MessageIdConflictError: A message id is taken by other content.
            PersistenceError: The turn could not be stored; no message of it is.

        Example:
            >>> memory = ChatMemory()
            >>> memory.append("Hello", "Hi!")[1].message.content
            'Hi!'
        """
        answers = more if ai is None else (ai, *more)
        return append.append(self._conversation, human, *answers)

    aappend = averb(append)

    @verb
    def extend(
        self,
        messages: Iterable[MessageInput],
        timestamps: Iterable[datetime] | None = None,
        *,
        select: bool = False,
    ) -> Flow[list[ConversationNode]]:
        """Store many messages, for an import: as one chain below the tip, or each turn in its thread.

        A chain is stored in one transaction; 100,000 messages take about 3 seconds. `sort` moves the turns of
        a chain to their threads.

        Args:
            messages: Messages of any role, in order; text is a human message.
            timestamps: The time of each message; by default the current time. A time without a zone is UTC.
            select: Whether the node selector selects the parent of each human message, as in `append`. Each
                turn is then stored in a transaction of its own.

        Returns:
            The nodes, in order.

        Raises:
            InputError: A message cannot be used, or the numbers of messages and timestamps differ.
            MessageIdConflictError: A message id is taken by other content.
            PersistenceError: The messages could not be stored.

        Example:
            >>> memory = ChatMemory()
            >>> [node.id for node in memory.extend([("user", "Hello"), ("assistant", "Hi!")])]
            [1, 2]
        """
        return append.extend(self._conversation, messages, timestamps, select)

    aextend = averb(extend)

    @verb
    def edit(self, node_id: int, message: MessageInput) -> Flow[ConversationNode]:
        """Store a new version of a message beside the message, and make it the tip.

        The old version and the answers of its turn are superseded: they stay in `history` and leave recall.
        Later turns stay in their thread.

        Args:
            node_id: The node to replace.
            message: The new version, of the same role, as a message or text.

        Returns:
            The new node.

        Raises:
            NodeNotFoundError: There is no such node.
            InputError: The roles differ, or the new version is several messages.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Helo", "Pardon?")
            >>> memory.edit(1, "Hello").id, [message.content for message in memory.messages]
            (3, ['Hello'])
        """
        return revise.edit(self._conversation, node_id, message)

    aedit = averb(edit)

    @verb
    def regenerate(self, node_id: int, message: MessageInput) -> Flow[list[ConversationNode]]:
        """Store a new answer beside the old answer, and make it the tip.

        The AI and tool messages of the turn are superseded; later turns stay in their thread.

        Args:
            node_id: Any message of the turn.
            message: The new answer; a list for an answer with tool calls.

        Returns:
            The new nodes, below the human message of the turn.

        Raises:
            NodeNotFoundError: There is no such node.
            InputError: The turn has no human message, or the new answer contains one.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Whatever.")
            >>> memory.regenerate(2, "Hi!")[0].parent_id
            1
        """
        return revise.regenerate(self._conversation, node_id, message)

    aregenerate = averb(regenerate)

    @verb
    def place(self, node_id: int, parent_id: int | None) -> Flow[ConversationNode]:
        """Move a message, and all messages below it, to another parent.

        The message gets a new node with a new id; the old node is superseded and names the new node. The
        messages below keep their ids and are attached to the new node.

        If a selector computed probabilities for the old place, the call is a correction: a few corrections
        change how readily a new thread is begun, and an earlier turn continued, in all conversations of the
        owner. `MemorySystem.stats` shows the change, `MemorySystem.reset_corrections` takes it back.

        Args:
            node_id: The node to move, usually a human message.
            parent_id: The new parent; `None` makes the message a root.

        Returns:
            The new node, whose `placement` records the move; the same node if it has this parent, which
            confirms a doubtful place.

        Raises:
            NodeNotFoundError: One of the nodes does not exist.
            InvalidGraphStateError: The parent is a descendant of the node.
            InputError: The node is not live, or the parent calls tools.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.extend([("user", "a"), ("ai", "b"), ("user", "c"), ("ai", "d")])
            >>> memory.place(3, None).id, len(memory.roots())
            (5, 2)
        """
        return corrections.place(self._conversation, node_id, parent_id)

    aplace = averb(place)

    @verb
    def sort(self, *, dry_run: bool = False, progress: Progress | None = None) -> Flow[list[Move]]:
        """Move the messages of a whole conversation to their threads, for example after an import.

        The place of each message is chosen by its text and its answer together, with the memory's embeddings
        and without a language model; the memory's selector is not asked. Messages that a person has placed
        stay: by `place`, or below a message that was checked out or edited. A moved message gets a new node,
        as by `place`, and its reason begins with "sorted: "; the messages below keep their nodes.

        The moves are stored in several transactions. After an interruption the conversation is a valid tree,
        and the next call continues. A second call moves nothing.

        Args:
            dry_run: Whether to return the moves without making them.
            progress: Called with the number of messages whose place is chosen and the number of all.

        Returns:
            The moves, in the order of time.

        Raises:
            EmbeddingError: The embedding model failed; no message is moved.

        Cost: 8 s for 1,000 turns, and the time to embed messages that have no vector yet.

        Example:
            >>> memory = ChatMemory(embeddings=False)
            >>> nodes = memory.extend(
            ...     [
            ...         ("user", "How do I read a CSV file in pandas?"),
            ...         ("ai", "Use pandas.read_csv."),
            ...         ("user", "Which wine goes with salmon?"),
            ...         ("ai", "A dry Riesling."),
            ...         ("user", "And if the CSV file has no header?"),
            ...         ("ai", "Call pandas.read_csv with header=None."),
            ...     ]
            ... )
            >>> [(move.node_id, move.parent_id, move.reason) for move in memory.sort()]
            [(3, None, 'opens a thread'), (5, 2, "returns to 'How do I read a CSV file in pandas?'")]
            >>> len(memory.roots()), memory.sort()
            (2, [])
        """
        return sort.sort(self._conversation, dry_run, progress)

    asort = averb(sort)

    @verb
    def unsort(self) -> Flow[list[Move]]:
        """Move the messages that `sort` has moved back to their earlier places.

        Messages that a person has placed since the sort stay. All versions stay in `history`.

        Returns:
            The moves, in the order of time.

        Example:
            >>> memory = ChatMemory(embeddings=False)
            >>> asked = ["How do I read a CSV file in pandas?", "Which wine goes with salmon?"]
            >>> nodes = memory.extend([asked[0], ("ai", "Use pandas."), asked[1], ("ai", "A dry Riesling.")])
            >>> len(memory.sort()), len(memory.roots()), len(memory.unsort()), len(memory.roots())
            (1, 2, 1, 1)
        """
        return sort.unsort(self._conversation)

    aunsort = averb(unsort)

    @verb
    def checkout(self, node_id: int) -> Flow[ConversationNode]:
        """Make a node the tip; the thread that ends in this node becomes the active thread.

        A tool call or a result stands for its whole exchange: the last result becomes the tip.

        Args:
            node_id: The node.

        Returns:
            The tip.

        Raises:
            NodeNotFoundError: There is no such node.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!") + memory.append("And tea?", "Tea.")
            >>> memory.checkout(2).id, [message.content for message in memory.messages]
            (2, ['Hello', 'Hi!'])
        """
        return revise.checkout(self._conversation, node_id)

    acheckout = averb(checkout)

    @verb
    def summarize(self, node_id: int | None = None) -> Flow[list[ConversationNode]]:
        """Write the summary of one node, or of every answer without a summary, with the memory's summarizer.

        Each summary is one call of the summarizer. If a call fails, a warning is logged and the message stays
        without a summary until the next call.

        Args:
            node_id: The node; by default every answer without a summary.

        Returns:
            The summarised nodes, with their `summary`.

        Raises:
            InputError: The memory has no summarizer.
            NodeNotFoundError: There is no such node.

        Example:
            >>> from langchain_threadmem import ExtractiveSummarizer
            >>> memory = ChatMemory(summarizer=ExtractiveSummarizer())
            >>> nodes = memory.append("Where do figs grow?", "Figs grow in the south.")
            >>> memory.summarize()[0].summary.summary
            'Figs grow in the south.'
        """
        return summary_verbs.summarize(self._conversation, self._summarizer, node_id)

    asummarize = averb(summarize)

    @verb
    def forget(self, message_id: MessageRef, *, purge: bool = True) -> Flow[None]:
        """Forget a message for good, or take it out of recall.

        Args:
            message_id: The id of the message, or the id of its node.
            purge: Whether the message and its other versions are also removed from the history;
                `MemorySystem.scrub` then clears their bytes from the files. Otherwise the message stays in
                the history and in `messages`, and recall does not find it.

        Raises:
            NodeNotFoundError: The conversation has no such message.
            InputError: The message is a tool call, a tool result or a system message, it was superseded or
                forgotten before, or it is exempt from forgetting.

        Example:
            >>> memory = ChatMemory(embeddings=False)
            >>> nodes = memory.append("My number is 555.", "Noted.")
            >>> memory.forget(1)
            >>> [message.content for message in memory.messages]
            ['Noted.']
        """
        return forget.forget_message(self._conversation, message_id, purge=purge)

    aforget = averb(forget)

    @verb
    def reset(self) -> Flow[None]:
        """Remove every message of this conversation, with its words and vectors.

        Some of their bytes stay in the files until `MemorySystem.scrub`.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!")
            >>> memory.reset()
            >>> len(memory)
            0
        """
        return erase.reset(self._runtime, self.conversation_id)

    areset = averb(reset)

    # Reading

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages for a model: the newest system message, then the active thread through the window.

        While a human message waits for its answer, a marked message before it quotes turns of other threads
        that it may continue (option `cover`), and the list is one that every provider accepts, see
        `messages.prompt.as_prompt`: the texts of a group chat name their speakers, for example. The cost
        depends on the number of messages that are returned: 3 ms for 1,000.
        """
        return run(coverage.messages(self._conversation), self._runtime)

    async def amessages(self) -> list[BaseMessage]:
        """Async `messages`."""
        return await arun(coverage.messages(self._conversation), self._runtime)

    @property
    def tip(self) -> ConversationNode | None:
        """The last node of the active thread; `None` in an empty conversation."""
        return run(read.tip(self._conversation), self._runtime)

    async def atip(self) -> ConversationNode | None:
        """Async `tip`."""
        return await arun(read.tip(self._conversation), self._runtime)

    @property
    def history(self) -> list[ConversationNode]:
        """The nodes of all messages, including superseded messages, in the order of writing.

        Example:
            >>> memory = ChatMemory()
            >>> human, answer = memory.append("Hello", "Hi!")
            >>> edited = memory.edit(human.id, "Good day")
            >>> [(node.id, node.superseded_by) for node in memory.history]
            [(1, 3), (2, 3), (3, None)]
        """
        return run(read.history(self._conversation), self._runtime)

    async def ahistory(self) -> list[ConversationNode]:
        """Async `history`."""
        return await arun(read.history(self._conversation), self._runtime)

    @property
    def graph(self) -> nx.DiGraph[int]:
        """The tree of live nodes and their ancestors as a NetworkX graph.

        The attribute `"node"` of each node is its `ConversationNode`. Each access builds the graph, which
        takes about 20 µs for each node.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!")
            >>> list(memory.graph.edges), memory.graph.nodes[2]["node"].message.content
            ([(1, 2)], 'Hi!')
        """
        return graph.to_graph(graph.living(self.history))

    async def agraph(self) -> nx.DiGraph[int]:
        """Async `graph`."""
        return graph.to_graph(graph.living(await self.ahistory()))

    @verb
    def threads(self) -> Flow[list[list[ConversationNode]]]:
        """The threads, each from its root to its leaf, the oldest leaf first; reads the whole conversation.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!") + memory.append("And tea?", "Tea.")
            >>> node = memory.place(3, None)
            >>> [[node.message.content for node in thread] for thread in memory.threads()]
            [['Hello', 'Hi!'], ['And tea?', 'Tea.']]
        """
        return graph.threads((yield from read.history(self._conversation)))

    athreads = averb(threads)

    @verb
    def thread(self, node_id: int) -> Flow[list[ConversationNode]]:
        """The nodes from the root to a node, oldest first.

        Args:
            node_id: The node.

        Raises:
            NodeNotFoundError: There is no such node.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!")
            >>> [node.message.content for node in memory.thread(2)]
            ['Hello', 'Hi!']
        """
        return read.thread(self._conversation, node_id)

    athread = averb(thread)

    @verb
    def siblings(self, message_id: MessageRef) -> Flow[list[ConversationNode]]:
        """The messages of the same role that continue the same message, including the given message.

        The alternatives that a chat shows as "2 of 3": edits, regenerated answers and threads that fork here.
        The siblings of a root are the other roots. Takes less than a millisecond at 10,000 messages.

        Args:
            message_id: The `id` of a message, or the `id` of its node.

        Returns:
            Live and superseded nodes, the oldest first.

        Raises:
            NodeNotFoundError: The conversation has no such message.

        Example:
            >>> memory = ChatMemory()
            >>> human, answer = memory.append("Hello", "Hi!")
            >>> [other] = memory.regenerate(human.id, "Good morning!")
            >>> [node.message.content for node in memory.siblings(answer.message.id)]
            ['Hi!', 'Good morning!']
        """
        return navigate.siblings(self._conversation, message_id)

    asiblings = averb(siblings)

    @verb
    def versions(self, message_id: MessageRef) -> Flow[list[ConversationNode]]:
        """The message and its siblings that it replaced or that replaced it, oldest first.

        Args:
            message_id: The `id` of a message, or the `id` of its node.

        Raises:
            NodeNotFoundError: The conversation has no such message.

        Example:
            >>> memory = ChatMemory()
            >>> human, answer = memory.append("Hello", "Hi!")
            >>> edited = memory.edit(human.id, "Hello there")
            >>> [node.message.content for node in memory.versions(edited.message.id)]
            ['Hello', 'Hello there']
        """
        return navigate.versions(self._conversation, message_id)

    aversions = averb(versions)

    @verb
    def fork_point(self, message_id: MessageRef) -> Flow[ConversationNode | None]:
        """The nearest message above a message that more than one message continues; `None` if there is none.

        Args:
            message_id: The `id` of a message, or the `id` of its node.

        Raises:
            NodeNotFoundError: The conversation has no such message.

        Example:
            >>> memory = ChatMemory()
            >>> human, answer = memory.append("Hello", "Hi!")
            >>> nodes = memory.append("And bread?", "Bread.")
            >>> _ = memory.checkout(answer.id)
            >>> nodes = memory.append("And tea?", "Tea.")
            >>> memory.fork_point(nodes[-1].message.id).message.content
            'Hi!'
        """
        return navigate.fork_point(self._conversation, message_id)

    afork_point = averb(fork_point)

    @verb
    def thread_of(self, message_id: MessageRef) -> Flow[list[ConversationNode]]:
        """The thread that a message is in: from its root through the message to the newest message below it.

        Below a live message only live messages count. Cost grows with the length of the thread and with the
        forks below the message.

        Args:
            message_id: The `id` of a message, or the `id` of its node.

        Raises:
            NodeNotFoundError: The conversation has no such message.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.extend(["Hello", ("ai", "Hi!"), "And bread?", ("ai", "Bread.")])
            >>> [node.message.content for node in memory.thread_of(nodes[1].message.id)]
            ['Hello', 'Hi!', 'And bread?', 'Bread.']
        """
        return navigate.thread_of(self._conversation, message_id)

    athread_of = averb(thread_of)

    @verb
    def switch(self, message_id: MessageRef, *, revive: bool = False) -> Flow[ConversationNode]:
        """Make the thread that a message is in the active thread.

        The next message continues the end of the thread. Nothing else changes: a superseded version stays
        superseded, and no selector continues it. Takes less than a millisecond at 10,000 messages, unless
        thousands of forks are below the message.

        Args:
            message_id: The `id` of a message, or the `id` of its node.
            revive: Whether the superseded versions in the thread become live, and the versions that replaced
                them are superseded. A message that has been moved to another thread stays there.

        Returns:
            The node in which the thread ends.

        Raises:
            NodeNotFoundError: The conversation has no such message.

        Example:
            >>> memory = ChatMemory()
            >>> human, answer = memory.append("Hello", "Hi!")
            >>> [other] = memory.regenerate(human.id, "Good morning!")
            >>> memory.switch(answer.message.id).message.content
            'Hi!'
            >>> [message.content for message in memory.messages]
            ['Hello', 'Hi!']
            >>> node = memory.switch(answer.message.id, revive=True)
            >>> [node.message.content for thread in memory.threads() for node in thread]
            ['Hello', 'Hi!']
        """
        if revive:
            return corrections.revive(self._conversation, message_id)
        return navigate.switch(self._conversation, message_id)

    aswitch = averb(switch)

    @verb
    def list_threads(self, *, limit: int = 50, cursor: str | None = None) -> Flow[Page[ThreadInfo]]:
        """The threads of the conversation, the thread that was used last first.

        The first call reads every message without its text: about 50 ms at 10,000 messages. Later calls read
        the new messages, and all messages again after one was edited, moved or removed.

        Args:
            limit: Maximum number of threads.
            cursor: `cursor` of the previous page; `None` for the first page.

        Returns:
            A list with the attribute `cursor`, which is `None` on the last page.

        Raises:
            InputError: `limit` or `cursor` cannot be used.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("How do I bake bread?", "With patience.")
            >>> [(thread.title, thread.messages, thread.active) for thread in memory.list_threads()]
            [('How do I bake bread?', 2, True)]
        """
        return catalogue.list_threads(self._conversation, limit, cursor)

    alist_threads = averb(list_threads)

    @verb
    def rename_thread(self, message_id: MessageRef, title: str) -> Flow[str]:
        """Set the title of a thread, as `list_threads` shows it.

        The title belongs to the root: threads that fork below the same root have the same title. It is erased
        with the root, since it may quote the root.

        Args:
            message_id: The `id` of any message of the thread, or the `id` of its node.
            title: The new title; "" for the first words of its first question.

        Returns:
            The title that the thread has now.

        Raises:
            NodeNotFoundError: The conversation has no such message.
            InputError: The title is not text.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("How do I bake bread?", "With patience.")
            >>> memory.rename_thread(nodes[0].id, "Baking"), memory.list_threads()[0].title
            ('Baking', 'Baking')
            >>> memory.rename_thread(nodes[0].id, "")
            'How do I bake bread?'
        """
        return catalogue.rename_thread(self._conversation, message_id, title)

    arename_thread = averb(rename_thread)

    @verb
    def doubtful(self, limit: int = 20) -> Flow[list[Doubt]]:
        """The messages whose place is doubtful, the most doubtful first.

        A place is doubtful if its probability was below 0.7 when a selector chose it. Messages that were
        placed without probabilities or by `place`, and superseded messages, are omitted. `place` moves a
        message, or confirms its place. Reads the probabilities of all messages, without texts: about 40 ms at
        10,000 messages, and 0.1 ms for each result.

        Args:
            limit: Maximum number of messages.

        Returns:
            The messages, each with its parent, the probability of its place, the likeliest other place and
            the reason.

        Raises:
            InputError: `limit` is not a positive integer.

        Example:
            >>> def guess(tree, message):
            ...     tree.reason, tree.chances = "a guess", ((2, 0.5), (None, 0.5))
            ...     return 2 if tree.turn_ends() else None
            >>> memory = ChatMemory(node_selector=guess)
            >>> nodes = memory.append("How do I bake bread?", "With patience.")
            >>> nodes = memory.append("How do I make tea?", "With hot water.")
            >>> [doubt] = memory.doubtful()
            >>> doubt.node.id, doubt.probability, doubt.runner_up.title
            (3, 0.5, 'How do I make tea?')
        """
        return corrections.doubtful(self._conversation, limit)

    adoubtful = averb(doubtful)

    @verb
    def roots(self) -> Flow[list[ConversationNode]]:
        """The nodes without a parent, which begin threads."""
        return navigate.roots(self._conversation)

    aroots = averb(roots)

    @verb
    def retrieve(
        self,
        query: str,
        n_results: int = 10,
        context_depth: int | None = None,
        order: recall_verbs.Order = "chronological",
        *,
        fallback: recall_verbs.Fallback = "nothing",
    ) -> Flow[list[BaseMessage]]:
        """The messages for a model that match a query: the hits of `recall` with their ancestors.

        Each message is returned once, and a tool result only with its call. A linear memory returns its
        newest messages.

        Args:
            query: A question, or words.
            n_results: Number of hits; their ancestors are not counted.
            context_depth: Number of ancestors of each hit; `None` for the memory's default, 0 for none.
            order: "chronological" for the oldest first, thread by thread; "relevance" for the best hit first,
                then its ancestors from the nearest to the root.
            fallback: The result without a hit: "nothing", or the "recent" messages.

        Raises:
            InputError: A number is negative, or an option is unknown.
            EmbeddingError: The embedding model failed.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.extend(["one", ("ai", "two"), "three", ("ai", "four")])
            >>> [message.content for message in memory.retrieve("anything", n_results=3)]
            ['two', 'three', 'four']
        """
        conversation = self._conversation
        return recall_verbs.retrieve(
            conversation, query, n_results, context_depth, order, fallback, linear=conversation.is_linear
        )

    aretrieve = averb(retrieve)

    @verb
    def recall(
        self,
        query: str,
        n_results: int = 10,
        context_depth: int | None = None,
        **conditions: Unpack[Conditions],
    ) -> Flow[list[Recollection]]:
        """Find messages and summaries by words and by meaning, the best hit first.

        The first call embeds the messages; later messages are embedded in the background after each append. A
        call embeds up to 2,000 messages that have no vector yet. If there are more, as after a large import,
        these are found by their words alone until they are embedded. Words are indexed in the same way: if
        more than 10,000 messages are not indexed, a call finds the indexed messages and the newest 2,000 (of
        all conversations at least 200 of each of the ten with the newest messages), and the others are
        indexed in the background. For complete results call `flush` first, or pass `wait=True`.

        Without an embedding model words alone count, and a query that shares no word with any message finds
        nothing. Names of speakers (`message.name`), dates and times in the query affect the ranking. The time
        of a message is `additional_kwargs["time"]`, or another field of `messages.times.FIELDS`, if this
        value can be parsed (ISO 8601, seconds since 1970, "8 May, 2023"), else the time of storing.

        A conversation of 2,000 messages takes 1 to 2 ms, without the time to embed the query.

        Args:
            query: A question, or words.
            n_results: Maximum number of hits.
            context_depth: Number of ancestors in the `thread` of each hit; `None` for the memory's default.
            **conditions: The fields of `recall.options.RecallOptions`: `scope` (the active "thread", this
                "conversation", or all conversations of the "owner"), `include_superseded`, `speaker`, `role`
                ("human" or "ai"), `rank` (0 for messages, 1 and 2 for summaries of conversations and of the
                long-term memory, or several), `since` and `until` (datetimes), `half_life` (the timedelta in
                which odds halve), `max_tokens` (a budget of tokens for whole turns outside the window),
                `reranker`, `wait` (`True` to index and embed every message first, `False` to embed none) and
                `filters` on content, role, speaker, time, rank and metadata: `{"metadata.topic": "bread"}`.

        Returns:
            Hits with score, thread and reason. Of equal texts of a speaker the newest is the hit, and a newer
            statement of a thing comes directly before the older one (`recall.versions`). A hit that is
            probably chance is `weak`. A hit that is a summary names the messages that it covers;
            `MemorySystem.unfold` returns them.

        Raises:
            InputError: A number is negative, or an option is out of its range.
            OwnerMismatchError: All conversations of the owner are searched in a run of a graph that names
                another person.
            EmbeddingError: The embedding model failed; the stored messages are unchanged.

        Example:
            >>> memory = ChatMemory(embeddings=False)
            >>> nodes = memory.append("How do I read CSV files?", "Use pandas.read_csv.")
            >>> hit = memory.recall("csv")[0]
            >>> hit.node.id, str(hit.why)
            (1, 'shares csv')
        """
        options = RecallOptions(n_results, **conditions)
        if options.scope == "owner":
            self._check_run(None)
        return recall_verbs.recall(self._conversation, query, options, context_depth)

    arecall = averb(recall)

    @verb
    def instructions(
        self, *, scope: Literal["conversation", "owner"] = "conversation"
    ) -> Flow[list[Instruction]]:
        """The standing instructions and preferences that people have stated, oldest first.

        "Always answer in French", "call me Ada" and "I prefer short answers" are instructions, "I prefer
        window seats" is a preference; phrases of 14 languages are known. A later message takes an instruction
        back ("you don't have to answer in French anymore"), and so does `revoke_instruction`. `recall` with
        at least four results includes the instruction that fits the query best, in the first ten turns; with
        at least ten results two of them. A question about the past ("did I ...") is shown one, and none that
        holds for requests of one kind ("when I ask about ...").

        Among all conversations of the owner, the newest 400 messages with words of instructions are read.

        Args:
            scope: This "conversation", or all conversations of the "owner".

        Raises:
            InputError: The scope is another value, or an encrypted memory is asked for all conversations.

        Example:
            >>> memory = ChatMemory(embeddings=False)
            >>> nodes = memory.append("Always answer in French.", "D'accord.")
            >>> [(one.text, one.kind, one.node.id) for one in memory.instructions()]
            [('Always answer in French.', 'instruction', 1)]
            >>> memory.revoke_instruction(1)
            >>> memory.instructions()
            []
        """
        if scope == "owner":
            self._check_run(None)
        return standing.of_conversation(self._conversation, scope)

    ainstructions = averb(instructions)

    @verb
    def revoke_instruction(self, message_id: MessageRef) -> Flow[None]:
        """Take a standing instruction back: its whole message leaves memory, and stays in history.

        Summaries that may quote the message are deleted.

        Args:
            message_id: The `id` of the message, or the `id` of its node.

        Raises:
            NodeNotFoundError: The conversation has no such message.
            InputError: The message is not in memory, since it was superseded or taken back before.

        Example:
            >>> memory = ChatMemory(embeddings=False)
            >>> nodes = memory.append("Call me Ada.", "Hello, Ada.")
            >>> memory.revoke_instruction(nodes[0].id)
            >>> memory.instructions(), len(memory)
            ([], 2)
        """
        return forget.forget_message(self._conversation, message_id, purge=False)

    arevoke_instruction = averb(revoke_instruction)

    @verb
    def flush(self) -> Flow[int]:
        """Embed all messages and summaries without a vector, and index all words, as after an import.

        An interrupted call keeps its finished batches.

        Returns:
            The number of messages and summaries that were embedded.

        Raises:
            EmbeddingError: The embedding model failed.

        Example:
            >>> from langchain_core.embeddings import DeterministicFakeEmbedding
            >>> memory = ChatMemory(embeddings=DeterministicFakeEmbedding(size=8))
            >>> nodes = memory.append("Hello", "Hi!")
            >>> memory.flush()
            2
        """
        return (yield from flush(self._runtime, (yield from tree_of(self._conversation))))

    aflush = averb(flush)

    # Export and storage

    @verb
    def to_mermaid(self, **options: Unpack[MermaidOptions]) -> Flow[str]:
        """The tree as a Mermaid diagram.

        Of a long conversation, the newest messages are drawn, with the number of the others.

        Args:
            **options: `show_summaries` for titles of summaries in place of contents, `max_content_length`
                (60), `role` to draw messages of one role only, and the limits of a diagram, `max_text_size`
                (50,000) and `max_edges` (500), each `None` for no limit.

        Raises:
            InputError: The role is unknown, or a number is negative.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!")
            >>> print(memory.to_mermaid())
            graph TD
                1["H1: Hello"]
                2["A2: Hi!"]
                1 --> 2
                style 1 fill:#a7c7e7
                style 2 fill:#cdb4f6
                classDef default color:#26282c
        """
        history = yield from read.history(self._conversation)
        return mermaid.to_mermaid(graph.living(history), **options)

    ato_mermaid = averb(to_mermaid)

    @verb
    def export(self, format: str = "json") -> Flow[str]:
        """The conversation as text.

        Args:
            format: The format:

                - "json": a document with all messages, superseded messages included, which `load` and
                  `MemorySystem.import_file` read; `formats/exporters/schema.json` is its JSON Schema.
                - "jsonl": a line for each thread, with messages in the format of OpenAI.
                - "jsonl_messages": a line for each message.
                - "fine_tuning": a line for each answered thread, as OpenAI accepts it for training.
                - "markdown": a heading for each thread, a quote for each message.
                - "text" (also "plain_text"): a transcript.
                - "graphml": all messages as a graph for NetworkX, Gephi or yEd.
                - "mermaid": one diagram, see `to_mermaid`.
                - "html": a page with search and a map; "svg": a picture.
                - "openwebui", "librechat": the file that the program imports, with all branches.
                - "llm": SQL that adds the tree to the `logs.db` of the program `llm`.

        Raises:
            InputError: The format is unknown.
            UnsupportedMessageError: A message has no form in the format; the error names the node.

        Example:
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Where do figs grow?", "In the south.")
            >>> print(memory.export("text"))
            User: Where do figs grow?
            Assistant: In the south.
        """
        return formats.export(self._conversation, format)

    aexport = averb(export)

    def save(self, path: str | Path) -> None:
        """Write the conversation to a JSON file. After an error the file is unchanged.

        Args:
            path: The file.

        Raises:
            PersistenceError: The file cannot be written.

        Example:
            >>> import tempfile
            >>> memory = ChatMemory()
            >>> nodes = memory.append("Hello", "Hi!")
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     memory.save(f"{folder}/chat.json")
            ...     len(ChatMemory.load(f"{folder}/chat.json"))
            2
        """
        files.write_text(path, self.export("json"))

    async def asave(self, path: str | Path) -> None:
        """Async `save`."""
        await asyncio.to_thread(files.write_text, path, await self.aexport("json"))

    @classmethod
    def load(cls, path: str | Path, **options: Unpack[ChatMemoryOptions]) -> Self:
        """Read a conversation that `save`, or another program, has written in the same format.

        A conversation with threads gets a `SemanticNodeSelector`, unless a `node_selector` is passed.

        Args:
            path: The file.
            **options: As for `ChatMemory`; with `system`, the conversation is stored there.

        Raises:
            PersistenceError: The file cannot be read.
            InputError: The file is not a saved conversation, or the target conversation is not empty.
            InvalidGraphStateError: The nodes do not form a tree.
        """
        saved = formats.load(files.read_text(path))
        memory = cls(**_loading(saved, options))
        run(revise.restore(memory._conversation, saved.document.nodes, saved.tip), memory._runtime)
        return memory

    @classmethod
    async def aload(cls, path: str | Path, **options: Unpack[ChatMemoryOptions]) -> Self:
        """Async `load`."""
        saved = formats.load(await asyncio.to_thread(files.read_text, path))
        memory = cls(**_loading(saved, options))
        await arun(revise.restore(memory._conversation, saved.document.nodes, saved.tip), memory._runtime)
        return memory

    @verb
    def verify(self) -> Flow[Verification]:
        """Check the database and every node of this conversation.

        Returns:
            The result, with `ok` and `problems`; damage is reported, not raised.
        """
        return verify_conversation(self._conversation)

    averify = averb(verify)

    def close(self) -> None:
        """Close the database of the system, and so every memory of the same system."""
        self._runtime.close()

    async def aclose(self) -> None:
        """Async `close`."""
        await self._runtime.aclose()

    def __len__(self) -> int:
        return len(graph.living(self.history))

    def __bool__(self) -> bool:
        return True  # Without this method `memory or default` would replace an empty memory.

    def __repr__(self) -> str:
        return f"ChatMemory(conversation_id={self.conversation_id!r}, node_selector={self.node_selector!r})"

    def _repr_mimebundle_(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> dict[str, str]:
        """The tree for Jupyter as a picture, and as an outline for frontends without pictures."""
        return run(formats.mime_bundle(self._conversation), self._runtime)


def _loading(saved: formats.SavedConversation, options: ChatMemoryOptions) -> ChatMemoryOptions:
    """Options, completed by those that a saved conversation implies."""
    options.setdefault("node_selector", saved.selector)
    if saved.context_depth is not None:
        options.setdefault("context_depth", saved.context_depth)
    return options
