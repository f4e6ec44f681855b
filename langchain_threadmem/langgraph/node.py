"""LangGraph nodes that select the thread of each message, and a chat made of them.

`select_thread_node` comes before the model: the nodes after it receive a `messages` list of one thread. It
works with any checkpointer and without a checkpointer: the tree is in the system, and messages of the graph's
list are added to the tree by message id. Recalled text has a separate state key and is not in `messages`, so
that recall does not find it again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Unpack

from langchain_core.messages import BaseMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.channels import UntrackedValue
from langgraph.config import get_config
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph

from langchain_threadmem.chat_memory import SelectionOptions, ThreadOptions
from langchain_threadmem.common.inputs import value_in
from langchain_threadmem.engine.chat_model import chat_model
from langchain_threadmem.engine.flow import Flow, arun, run
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError
from langchain_threadmem.langgraph._conversations import RunConversations
from langchain_threadmem.langgraph._state_updates import (
    announced,
    check_recall,
    forget_removed,
    routed_in,
    shown_before,
    state_update,
    with_own_summaries,
)
from langchain_threadmem.langgraph._system import ConversationId, Lineage
from langchain_threadmem.langgraph.routing.events import (
    SUGGEST_AT,
    OnSelect,
    Suggestion,
    suggestion_threshold,
)
from langchain_threadmem.langgraph.routing.recall_elsewhere import recall_elsewhere
from langchain_threadmem.langgraph.routing.route import ActiveThread, route
from langchain_threadmem.langgraph.routing.store_messages import store_turn
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.prompt import newest_human, shown
from langchain_threadmem.messages.windows import Window
from langchain_threadmem.recall.options import Scope
from langchain_threadmem.recall.quoting import Recalled
from langchain_threadmem.selection import coverage
from langchain_threadmem.selection.llm_selector import selector_of
from langchain_threadmem.selection.run_selector import COVER, ThreadedConversation
from langchain_threadmem.selection.selectors import AnySelector, SemanticNodeSelector

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.store.base import BaseStore

    from langchain_threadmem.engine.chat_model import Model


Node = Runnable[Any, dict[str, Any]]
Work = Callable[[Any, ThreadedConversation, Lineage], Flow[dict[str, Any]]]
"""The flow of a node: takes the state, and returns the update."""


class ThreadedState(MessagesState):
    """A `MessagesState` with the active thread and the recalled messages, for a user interface.

    Attributes:
        active_thread: The place of the newest human message, with the reason.
        recalled: Hits in other threads for the newest human message. Checkpoints do not contain them, since
            what they quote may be deleted later; a resumed run recalls again.
        suggestion: Another place for the newest human message, with `on_select="suggest"`.
        summaries_of_other_threads: Running summaries of other threads, by the state key of the summary of
            the active thread.
    """

    active_thread: NotRequired[ActiveThread]
    recalled: NotRequired[Annotated[list[Recalled], UntrackedValue]]
    suggestion: NotRequired[Suggestion | None]
    summaries_of_other_threads: NotRequired[dict[str, list[Any]]]


def select_thread_node(
    system: MemorySystem,
    selector: AnySelector | None = None,
    *,
    messages_key: str = "messages",
    conversation_id: ConversationId = None,
    owner: OwnerOfRun | None = None,
    on_select: OnSelect = "apply",
    suggest_at: float = SUGGEST_AT,
    **options: Unpack[ThreadOptions],
) -> Node:
    """A node that selects the thread of the newest human message, and reduces `messages` to that thread.

    The selector is called once for each message, and not again in a tool loop, a resume or a replay. A
    message that a saver has stored elsewhere is moved before the node returns. System messages stay. A list
    that equals the thread, or a trimmed or summarised form of the thread, is not changed. A running summary
    of langmem, in a key of the state or in a dictionary such as `context`, is exchanged for that of the
    thread.

    Each selection is an event, a `langgraph.routing.events.SelectionEvent`: on the graph's custom stream
    (`stream_mode="custom"`), and as the custom event "threadmem.selection" for callback handlers and
    `astream_events`. Before it, each earlier turn that was moved because of its answer (option `heal`) is a
    `langgraph.routing.events.MoveEvent`, "threadmem.move".

    A run from an older checkpoint, as for an edited question, continues the messages up to that checkpoint;
    turns of other branches are neither candidates of the selector nor recalled.

    Args:
        system: The system of the conversations.
        selector: Selects the thread; by default `SemanticNodeSelector`.
        messages_key: The state key of the list; its reducer must be `add_messages`.
        conversation_id: The conversation, or a function from the run's configuration to its name; by default
            the `thread_id`.
        owner: The owner of a run, for a graph with many users: the name of a field of the run's context or
            `configurable` (`owner="user_id"`), or a function of the run. By default the system's owner.
        on_select: "apply" puts a message in the place that the selector chooses. With "suggest" it continues
            the active thread, and another place is suggested in the event and in the state key `suggestion`;
            `place` of the conversation accepts it.
        suggest_at: The minimum probability of a suggestion, 0 to 1. Without probabilities (language models,
            functions) each other place is suggested.
        **options: As for `ChatMemory`: `single_tree`, `on_selection_failure`, a `window`, which limits the
            earlier turns in `messages`, `heal`, and `cover` and `cover_tokens`, which quote turns of
            other threads in a marked message before the question if it may continue them.

    Returns:
        A runnable for `StateGraph.add_node`, sync and async. It sets `messages` and running summaries if they
        change, and `active_thread` and `suggestion` if the state has these keys, as `ThreadedState` does.

    Raises:
        InputError: `system` is not a `MemorySystem`, or an option has the wrong type or is out of its range;
            in a run: no conversation is named.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> node = select_thread_node(MemorySystem(embeddings=False), conversation_id="first")
        >>> node.invoke({"messages": [HumanMessage("Hello", id="h1")]})["active_thread"]["parent_id"] is None
        True
    """
    chosen = selector if selector is not None else SemanticNodeSelector()
    conversations = RunConversations(system, conversation_id, chosen, owner, **options)
    threshold = suggestion_threshold(on_select, suggest_at)
    return _select_node(conversations, messages_key, threshold, is_prompt=True)


def _select_node(
    conversations: RunConversations, messages_key: str, threshold: float | None, *, is_prompt: bool = False
) -> Node:
    """The node of `select_thread_node`; `is_prompt`: a model reads its list as it is."""

    def work(state: Any, conversation: ThreadedConversation, lineage: Lineage) -> Flow[dict[str, Any]]:
        messages, before = _list(state, messages_key), value_in(state, "active_thread")
        yield from forget_removed(conversation, messages, lineage, get_config(), messages_key)
        routed = yield from route(conversation, messages, routed_in(before), lineage, threshold)
        if routed is None:
            return {}
        yield from announced(routed)
        if is_prompt:
            yield from coverage.counted(conversation, routed.messages or messages)
        update = state_update(routed, threshold is not None, messages_key)
        update = yield from with_own_summaries(conversation, state, messages, routed, update, messages_key)
        return (yield from shown_before(update, messages_key))

    return _node("select_thread", conversations, work)


def store_turn_node(
    system: MemorySystem,
    *,
    messages_key: str = "messages",
    conversation_id: ConversationId = None,
    owner: OwnerOfRun | None = None,
) -> Node:
    """A node for the end of a turn that stores the new messages of the list, the answer included.

    Without this node and without a `ThreadMemSaver` an answer is stored with the next message.

    Args:
        system: The system of the conversations.
        messages_key: The state key of the list.
        conversation_id: As for `select_thread_node`.
        owner: As for `select_thread_node`.
    """
    return _store_node(RunConversations(system, conversation_id, owner=owner), messages_key)


def _store_node(conversations: RunConversations, messages_key: str) -> Node:
    def work(state: Any, conversation: ThreadedConversation, lineage: Lineage) -> Flow[dict[str, Any]]:
        active = value_in(state, "active_thread")
        yield from store_turn(conversation, _list(state, messages_key), lineage, routed_in(active))
        return {}

    return _node("store_turn", conversations, work)


def recall_node(
    system: MemorySystem,
    n_results: int = 4,
    *,
    scope: Scope = "conversation",
    min_similarity: float = 0.3,
    messages_key: str = "messages",
    conversation_id: ConversationId = None,
    owner: OwnerOfRun | None = None,
    cover: float | None = None,
) -> Node:
    """A node that recalls from other threads for the newest human message, and sets the state key `recalled`.

    A state of your own declares the key as `Annotated[list[Recalled], UntrackedValue]`, with a class of
    `langgraph.channels`: otherwise checkpoints keep recalled text that is deleted later.

    Args:
        system: The system of the conversations.
        n_results: Maximum number of messages and summaries.
        scope: The other threads of the "conversation", or also the other conversations of the "owner".
        min_similarity: The minimum cosine of a hit; without embeddings a hit must share a word.
        messages_key: The state key of the list.
        conversation_id: As for `select_thread_node`.
        owner: As for `select_thread_node`.
        cover: As for `ChatMemory`, if a later node adds these turns to the list; they are then not recalled.
    """
    check_recall(n_results, scope, min_similarity, "n_results")
    shared = scope == "owner" and n_results > 0
    conversations = RunConversations(system, conversation_id, owner=owner, shared=shared, cover=cover)
    return _node("recall", conversations, _recalling(n_results, scope, min_similarity, messages_key))


def _recalling(n_results: int, scope: Scope, min_similarity: float, messages_key: str = "messages") -> Work:
    def work(state: Any, conversation: ThreadedConversation, lineage: Lineage) -> Flow[dict[str, Any]]:
        messages = _list(state, messages_key)
        newest = newest_human(messages)
        if newest is None:
            return {"recalled": []}
        hits = yield from recall_elsewhere(
            conversation,
            text_of(messages[newest]),
            messages,
            n_results,
            scope=scope,
            min_similarity=min_similarity,
            lineage=lineage,
        )
        return {"recalled": hits}

    return work


def create_threaded_chat(
    model: Model,
    system: MemorySystem,
    *,
    selector: AnySelector | None = None,
    ask: float | None = None,
    window: Window | None = None,
    recall: int = 4,
    scope: Scope = "conversation",
    min_similarity: float = 0.3,
    system_prompt: str | None = None,
    conversation_id: ConversationId = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    owner: OwnerOfRun | None = None,
    on_select: OnSelect = "apply",
    suggest_at: float = SUGGEST_AT,
    **options: Unpack[SelectionOptions],
) -> CompiledStateGraph[ThreadedState, None, Any, Any]:
    """A chat in which every message is answered in its own thread.

    A turn selects the thread, recalls from other threads, calls the model with the system prompt, the thread
    through the window, and before the question a block with what was recalled and the turns of other threads
    that the message may continue (`cover`), and stores the answer. Tokens can be streamed
    (`stream_mode="messages"`). The state is a `ThreadedState`.

    Args:
        model: A chat model, or the name of one as for `ChatMemory.threaded`.
        system: The system of the conversations.
        selector: Selects the thread; by default `SemanticNodeSelector`.
        ask: The maximum share of messages, 0 to 1, for which the model is also asked which thread they
            continue: the messages of which the semantic selector is unsure, as for `LLMNodeSelector`. A
            question takes a call, or two after an unusable answer, and no answer is streamed. By default 0.1
            for a model with tools or a JSON mode and a semantic selector, else 0; 0 for no question.
        window: The part of the thread for the model: a `MessageWindow`, a `TokenWindow`, or a function from a
            list of messages to a list of messages. The system prompt and recalled text are not counted.
        recall: Maximum number of recalled messages and summaries of other threads; 0 for none.
        scope: The other threads of the "conversation", or also the other conversations of the "owner".
        min_similarity: The minimum cosine of a hit; without embeddings a hit must share a word.
        system_prompt: The text of the first system message.
        conversation_id: As for `select_thread_node`.
        checkpointer: Any LangGraph checkpointer; `None` for none, since the conversation is in `system`.
        store: A LangGraph store for the graph.
        owner: As for `select_thread_node`.
        on_select: As for `select_thread_node`.
        suggest_at: As for `select_thread_node`.
        **options: As for `ChatMemory`: `single_tree`, `on_selection_failure`, `cover`, `cover_tokens`,
            `heal`.

    Raises:
        InputError: An option has the wrong type or is out of its range.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> chat = create_threaded_chat(
        ...     FakeListChatModel(responses=["Hi!"]), MemorySystem(embeddings=False), conversation_id="first"
        ... )
        >>> chat.invoke({"messages": [("user", "Hello")]})["messages"][-1].content
        'Hi!'
    """
    check_recall(recall, scope, min_similarity)
    builder = StateGraph(ThreadedState)
    of_runs = partial(
        RunConversations, system, conversation_id, owner=owner, shared=scope == "owner" and recall > 0
    )
    selecting = of_runs(selector_of(selector, model, ask), **options | {"cover": None})
    threshold = suggestion_threshold(on_select, suggest_at)
    steps: list[tuple[str, Node]] = [("select_thread", _select_node(selecting, "messages", threshold))]
    if recall:
        recalling = recall_node(
            system,
            recall,
            scope=scope,
            min_similarity=min_similarity,
            conversation_id=conversation_id,
            owner=owner,
            cover=options.get("cover", COVER),
        )
        steps.append(("recall", recalling))
    recalls = _recalling(recall, scope, min_similarity)
    conversations = of_runs(window=window, **options)
    steps.append(("model", _model_node(model, system_prompt, conversations, recalls)))
    steps.append(("store_turn", _store_node(of_runs(), "messages")))
    builder.add_sequence(steps)
    builder.add_edge(START, "select_thread")
    builder.add_edge("store_turn", END)
    return builder.compile(checkpointer=checkpointer, store=store, name="threaded_chat")


def _model_node(
    model: Model, system_prompt: str | None, conversations: RunConversations, recalls: Work
) -> Node:
    chat = chat_model(model)
    first = [SystemMessage(system_prompt)] if system_prompt else []

    def prompt(state: Any, conversation: ThreadedConversation, lineage: Lineage) -> Flow[list[BaseMessage]]:
        messages = _list(state, "messages")
        system_messages = [message for message in messages if isinstance(message, SystemMessage)]
        thread = [m for m in messages if not isinstance(m, (SystemMessage, RemoveMessage))]
        newest = newest_human(thread) or 0
        hits = value_in(state, "recalled")
        if hits is None:  # The run goes on from a checkpoint, which contains no recalled text.
            hits = (yield from recalls(state, conversation, lineage))["recalled"]
        view = shown(thread[:newest], thread[newest:], conversation.window)
        return [*first, *system_messages, *(yield from coverage.prompt(conversation, view, hits, chat))]

    def counted(message: BaseMessage, conversation: ThreadedConversation) -> dict[str, Any]:
        usage = getattr(message, "usage_metadata", None)
        conversation.runtime.usage.add("answer", conversation.name, usage)
        return {"messages": [message]}

    def answer(state: Any, config: RunnableConfig) -> dict[str, Any]:
        conversation, lineage = conversations.of(config)
        messages = run(prompt(state, conversation, lineage), conversation.runtime)
        return counted(chat.invoke(messages, config), conversation)

    async def aanswer(state: Any, config: RunnableConfig) -> dict[str, Any]:
        conversation, lineage = conversations.of(config)
        messages = await arun(prompt(state, conversation, lineage), conversation.runtime)
        return counted(await chat.ainvoke(messages, config), conversation)

    return RunnableLambda(answer, aanswer, name="model")


def _node(name: str, conversations: RunConversations, work: Work) -> Node:
    """A node that runs a flow in the conversation of the run."""

    def invoke(state: Any, config: RunnableConfig) -> dict[str, Any]:
        conversation, lineage = conversations.of(config)
        return run(work(state, conversation, lineage), conversation.runtime)

    async def ainvoke(state: Any, config: RunnableConfig) -> dict[str, Any]:
        conversation, lineage = conversations.of(config)
        return await arun(work(state, conversation, lineage), conversation.runtime)

    return RunnableLambda(invoke, ainvoke, name=name)


def _list(state: Any, key: str) -> Sequence[BaseMessage]:
    """The messages of a state that is a dictionary, a dataclass or a Pydantic model."""
    messages: Sequence[BaseMessage] | None = value_in(state, key)
    if messages is None:
        raise InputError(f"the state has no key {key!r}; pass messages_key=... of the list of messages")
    return messages
