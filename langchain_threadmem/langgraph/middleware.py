"""Middleware for LangChain's agents, which passes the active thread to each model call.

Before the agent runs, the thread of the new human message is selected. Each model call receives the program's
messages, the active thread through the window, a block with what other threads add, and the whole current
turn; the list of the state does not change. After the run of the agent the turn is stored. Messages are
identified by their ids, so that a resume or a replay stores no message twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Self, Unpack, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.channels import UntrackedValue
from langgraph.config import get_config
from langgraph.runtime import Runtime

from langchain_threadmem.chat_memory import SelectionOptions
from langchain_threadmem.engine.flow import Flow, arun, averb, run, verb
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.engine.runtime import Runtime as MemoryRuntime
from langchain_threadmem.langgraph._conversations import RunConversations
from langchain_threadmem.langgraph._prompts import Prompts
from langchain_threadmem.langgraph._state_updates import (
    announced,
    check_recall,
    forget_removed,
    routed_in,
    shown_before,
    state_update,
    with_own_summaries,
)
from langchain_threadmem.langgraph._system import ConversationId, Lineage, shared_system
from langchain_threadmem.langgraph.routing.events import (
    SUGGEST_AT,
    OnSelect,
    Suggestion,
    suggestion_threshold,
)
from langchain_threadmem.langgraph.routing.recall_elsewhere import recall_elsewhere
from langchain_threadmem.langgraph.routing.route import ActiveThread, route, thread_to
from langchain_threadmem.langgraph.routing.store_messages import store, store_turn
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.ids import own_id
from langchain_threadmem.messages.prompt import after_front, shown
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.tool_pairs import whole_exchanges
from langchain_threadmem.messages.windows import Window, bound, check_window
from langchain_threadmem.recall.options import Scope
from langchain_threadmem.recall.quoting import Recalled
from langchain_threadmem.selection import coverage
from langchain_threadmem.selection.llm_selector import selector_of
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.selection.selectors import AnySelector

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelCallResult,
        ModelRequest,
        ModelResponse,
        OmitFromInput,
    )
except ImportError as error:
    raise ImportError(
        f"ThreadMemMiddleware requires the package langchain ({error}); install it with "
        'pip install "langchain-threadmem[agents]"'
    ) from error

if TYPE_CHECKING:
    from langchain_threadmem.engine.chat_model import Model


class ThreadMemState(AgentState[Any]):
    """An agent's state with the active thread and the recalled messages, for a user interface.

    Attributes:
        active_thread: The place of the newest human message, with the reason.
        recalled: Hits in other threads for the newest human message. Checkpoints do not contain them, since
            what they quote may be deleted later; a resumed run recalls again.
        suggestion: Another place for the newest human message, with `on_select="suggest"`.
    """

    active_thread: NotRequired[Annotated[ActiveThread, OmitFromInput]]
    recalled: NotRequired[Annotated[list[Recalled], UntrackedValue, OmitFromInput]]
    suggestion: NotRequired[Annotated[Suggestion | None, OmitFromInput]]


class MiddlewareOptions(SelectionOptions, total=False):
    """Options of `ThreadMemMiddleware`."""

    selector: AnySelector | None
    model: Model | None
    ask: float | None
    window: Window | None
    recall: int
    scope: Scope
    min_similarity: float
    rewrite: bool
    conversation_id: ConversationId
    on_select: OnSelect
    suggest_at: float


class ThreadMemMiddleware(AgentMiddleware[ThreadMemState, Any, Any]):
    """Stores an agent's conversation as a tree, and passes the active thread to the model.

    Other middleware can be used too. After `SummarizationMiddleware` has summarised the list, the model
    receives the summary and as many messages of the thread as the list still contains. Messages that other
    middleware adds to a request or changes in it are passed on and not stored. Messages that are removed from
    the list stay in the thread; the option `window` limits the messages for the model. A run from an older
    checkpoint continues the messages up to that checkpoint, as with `select_thread_node`. Selections, and
    moves of earlier turns, are events on the agent's custom stream and for callback handlers, as with that
    node.

    Args:
        system: The system of the conversations.
        selector: Selects the thread of a human message; by default `SemanticNodeSelector`.
        model: The chat model for `ask`, or its name as for `ChatMemory.threaded`; usually the agent's model.
            Without it no model is asked, since the middleware selects before it knows the agent's model.
        ask: The maximum share of messages, 0 to 1, for which `model` is asked which thread they continue, as
            for `create_threaded_chat`: by default 0.1.
        window: The part of the thread for the model: a `MessageWindow`, a `TokenWindow`, or a function from a
            list of messages to a list of messages. The system prompt and recalled text are not counted.
        recall: Maximum number of recalled messages and summaries of other threads; 0 for none.
        scope: The other threads of the "conversation", or also the other conversations of the "owner".
        min_similarity: The minimum cosine of a hit; without embeddings a hit must share a word.
        rewrite: Whether the state's own `messages` are reduced to the active thread.
        conversation_id: The conversation, or a function from the run's configuration to its name; by default
            the `thread_id`.
        owner: The owner of a run, for an agent with many users: the name of a field of the run's context or
            `configurable` (`owner="user_id"`), or a function of the run. By default the system's owner.
        on_select: As for `select_thread_node`: "apply", or "suggest" for a suggestion in the event and in the
            state key `suggestion`.
        suggest_at: As for `select_thread_node`.
        **options: As for `ChatMemory`: `single_tree`, `on_selection_failure`, `cover`, `cover_tokens`,
            `heal`.

    Raises:
        InputError: An option has the wrong type or is out of its range; in a run: no conversation is named.

    Example:
        >>> from langchain.agents import create_agent
        >>> from langchain_core.language_models import FakeListChatModel
        >>> memory = ThreadMemMiddleware(MemorySystem(embeddings=False), conversation_id="first")
        >>> agent = create_agent(FakeListChatModel(responses=["Hi!"]), middleware=[memory])
        >>> agent.invoke({"messages": [("user", "Hello")]})["active_thread"]["node_id"]
        1
    """

    state_schema = ThreadMemState

    def __init__(
        self,
        system: MemorySystem,
        *,
        selector: AnySelector | None = None,
        model: Model | None = None,
        ask: float | None = None,
        window: Window | None = None,
        recall: int = 4,
        scope: Scope = "conversation",
        min_similarity: float = 0.3,
        rewrite: bool = False,
        conversation_id: ConversationId = None,
        owner: OwnerOfRun | None = None,
        on_select: OnSelect = "apply",
        suggest_at: float = SUGGEST_AT,
        **options: Unpack[SelectionOptions],
    ) -> None:
        super().__init__()
        check_recall(recall, scope, min_similarity)
        check_window(window)
        chosen = selector_of(selector, model, ask)
        shared = scope == "owner" and recall > 0
        self._conversations = RunConversations(
            system, conversation_id, chosen, owner, shared=shared, **options
        )
        self._suggest_at = suggestion_threshold(on_select, suggest_at)
        self._window = window
        self._recall = recall
        self._scope = scope
        self._min_similarity = min_similarity
        self._rewrite = rewrite

    @property
    def _runtime(self) -> MemoryRuntime:
        return self._conversations.system(get_config()).runtime

    @classmethod
    def from_conn_string(
        cls, url: str | Path, *, owner: str = "user", **options: Unpack[MiddlewareOptions]
    ) -> Self:
        """Middleware on the database of a URL.

        Histories, retrievers and middleware of the same URL and owner share a system, which stays open.

        Args:
            url: As for `MemorySystem`.
            owner: The owner of the memory.
            **options: As for `ThreadMemMiddleware`.

        Example:
            >>> ThreadMemMiddleware.from_conn_string("sqlite://", conversation_id="first").name
            'ThreadMemMiddleware'
        """
        return cls(shared_system(url, owner), **options)

    @verb
    def before_agent(self, state: ThreadMemState, runtime: Runtime[Any]) -> Flow[dict[str, Any] | None]:
        """Select the thread of the new human message, and recall from other threads."""
        conversation, lineage = self._conversations.of(get_config())
        messages, before = state["messages"], state.get("active_thread")
        # Each model call adds the runners-up; the state is the thread alone.
        yield from forget_removed(conversation, messages, lineage, get_config(), "messages")
        routed = yield from route(
            conversation, messages, routed_in(before), lineage, self._suggest_at, covers=False
        )
        if routed is None:
            return None
        yield from announced(routed)
        hits = yield from self._recalled(conversation, routed.path.messages, lineage)
        update = state_update(routed, self._suggest_at is not None, "messages" if self._rewrite else None)
        if self._rewrite:
            update = yield from with_own_summaries(conversation, state, messages, routed, update, "messages")
            update = yield from shown_before(update, "messages")
        return {**update, "recalled": hits}

    abefore_agent = averb(before_agent)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Call the model with the active thread instead of the whole list."""
        view = run(self._view(request), self._runtime)
        messages = list(view)
        response = handler(request.override(messages=messages))
        _pass_on(request, view, messages)
        return _with_own_ids(request, response)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        """Async `wrap_model_call`."""
        view = await arun(self._view(request), self._runtime)
        messages = list(view)
        response = await handler(request.override(messages=messages))
        _pass_on(request, view, messages)
        return _with_own_ids(request, response)

    @verb
    def after_agent(self, state: ThreadMemState, runtime: Runtime[Any]) -> Flow[dict[str, Any] | None]:
        """Store the turn."""
        conversation, lineage = self._conversations.of(get_config())
        active = routed_in(state.get("active_thread"))
        yield from store_turn(conversation, state["messages"], lineage, active)
        return None

    aafter_agent = averb(after_agent)

    def _recalled(
        self, conversation: ThreadedConversation, path: Sequence[BaseMessage], lineage: Lineage
    ) -> Flow[list[Recalled]]:
        return recall_elsewhere(
            conversation,
            text_of(path[-1]),
            path,
            self._recall,
            scope=self._scope,
            min_similarity=self._min_similarity,
            lineage=lineage,
        )

    def _view(self, request: ModelRequest[Any]) -> Flow[list[AnyMessage]]:
        conversation, lineage = self._conversations.of(get_config())
        state = cast("ThreadMemState", request.state)
        # Tool results are stored before each call, since a summary may replace them in the list.
        active = state.get("active_thread")
        yield from store(conversation, state["messages"], routed_in(active))
        if active is None:
            return request.messages
        thread = yield from thread_to(conversation, active["message_id"])
        hits = state.get("recalled")
        if hits is None:  # The run goes on from a checkpoint, which contains no recalled text.
            hits = (yield from self._recalled(conversation, thread, lineage)) if thread else []
        window = bound(self._window, conversation.name)
        front, earlier, turn = _parts(request.messages, state["messages"], thread, active["message_id"])
        view = yield from coverage.prompt(conversation, shown(earlier, turn, window), hits, request.model)
        conversation.runtime.get(Prompts).remember(active["message_id"], conversation.name, view)
        return cast("list[AnyMessage]", after_front(front, view))


def _pass_on(request: ModelRequest[Any], view: Sequence[AnyMessage], messages: Sequence[AnyMessage]) -> None:
    """Copy messages that other middleware has added to a request to the list of the original request.

    The agent reads the original list after the call and adds these messages to the state.
    """
    former = {id(message) for message in (*view, *request.messages)}
    request.messages.extend(message for message in messages if id(message) not in former)


def _with_own_ids(request: ModelRequest[Any], response: ModelResponse[Any]) -> ModelResponse[Any]:
    """A response whose messages do not replace messages of the state.

    Two threads may have the same prompt. A cache then returns the same answer for both, with the same id, and
    the state would keep the answer in the place of the first.
    """
    active = cast("ThreadMemState", request.state).get("active_thread")
    taken = {message.id for message in request.state["messages"] if isinstance(message, AIMessage)}
    if active is not None and any(message.id in taken for message in response.result if message.id):
        question = active["message_id"]
        response.result = [
            message.model_copy(update={"id": own_id(message.id, question)})
            if message.id is not None and message.id in taken
            else message
            for message in response.result
        ]
    return response


def _parts(
    request: Sequence[BaseMessage], state: Sequence[BaseMessage], thread: Sequence[BaseMessage], turn_id: str
) -> tuple[list[BaseMessage], Sequence[BaseMessage], list[BaseMessage]]:
    """A request in three parts: messages outside the conversation, the earlier thread, the current turn."""
    request = [message for message in request if not isinstance(message, RemoveMessage)]
    stored = {message.id: message for message in state if not isinstance(message, RemoveMessage)}

    def belongs(message: BaseMessage) -> bool:
        return message.id in stored and not (isinstance(message, SystemMessage) or is_made_up(message))

    start = next((n for n, message in enumerate(request) if message.id == turn_id), None)
    if start is None:
        # The beginning of the turn was summarised; the list is the rest of the turn.
        return [m for m in request if not belongs(m)], [], [m for m in request if belongs(m)]
    outside = [message for message in request[:start] if not belongs(message)]
    front = [message for message in outside if not isinstance(message, ToolMessage)]
    results = [message for message in outside if isinstance(message, ToolMessage)]
    # Other middleware may have changed messages of the request, for example cleared tool results.
    changed = {message.id: message for message in request[:start] if message != stored.get(message.id)}
    earlier: Sequence[BaseMessage] = [changed.get(message.id, message) for message in thread[:-1]]
    if results:
        earlier = whole_exchanges([*earlier, *results])
    if any(is_made_up(message) for message in front):
        count = start - len(front)
        earlier = earlier[max(len(earlier) - count, 0) :]
    return front, earlier, list(request[start:])
