"""Threads for LangChain's agents: each model call sees the thread at hand, not five topics at once.

Before the agent runs, the new human message is put into its thread. Around each model call the model is shown
another list than the state's: what the program says, fenced recall from other threads, and the active thread
through the window, with the turn at hand whole. The state's own list is not touched. After the agent has run,
the turn is stored. Everything goes by message ids, so resumes and replays store nothing twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NotRequired, Self, cast

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    OmitFromInput,
)
from langchain_core.messages import AnyMessage, BaseMessage, RemoveMessage, SystemMessage, ToolMessage
from langgraph.config import get_config
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime

from langchain_threadmem.engine.flow import Flow, arun, run
from langchain_threadmem.errors import InputError
from langchain_threadmem.integrations._system import check_owner, shared_system
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.prompt import shown
from langchain_threadmem.messages.quoting import is_made_up
from langchain_threadmem.messages.tool_pairs import with_results
from langchain_threadmem.messages.windows import Window, bound
from langchain_threadmem.recall.options import Scope
from langchain_threadmem.recall.quoting import Recalled, recall_message
from langchain_threadmem.threads import route
from langchain_threadmem.threads.conversation import ThreadedConversation
from langchain_threadmem.threads.route import ActiveThread, Lineage
from langchain_threadmem.threads.selectors import AnySelector, SemanticNodeSelector


class ThreadMemState(AgentState[Any]):
    """An agent's state in which a user interface finds the active thread and what was recalled.

    Attributes:
        active_thread: Where the newest human message went, and why.
        recalled: What was found in other threads for it.
    """

    active_thread: NotRequired[Annotated[ActiveThread, OmitFromInput]]
    recalled: NotRequired[Annotated[list[Recalled], OmitFromInput]]


class ThreadMemMiddleware(AgentMiddleware[ThreadMemState, Any, Any]):
    """Keeps an agent's conversation as a tree, and shows the model the thread that matters.

    Works beside other middleware, `SummarizationMiddleware` among them: once that has summarised the list, as
    many messages of the thread are shown as it has kept, after its summary. Messages that other middleware
    puts into a request are passed on, and not stored. A run from an older checkpoint sees what was said up
    to that checkpoint, as with `select_thread_node`.

    Args:
        system: Where the conversations are.
        selector: What chooses the thread of a human message; by default `SemanticNodeSelector`.
        window: What the model is shown of the thread: a `MessageWindow`, a `TokenWindow`, or any function
            from messages to messages. The system prompt and what is recalled come on top.
        recall: How many messages of other threads, and summaries of such, to recall at most; 0 for none.
        scope: The other threads of the "conversation", or also the other conversations of the "owner".
        min_similarity: Cosine below which a message is not recalled; without embeddings it must share a word.
        rewrite: Also reduce the state's own `messages` to the active thread.
        conversation_id: The conversation, or a function from the run's configuration to it; by default its
            `thread_id`.
        **options: As for `ChatMemory`: `single_tree`, `on_selection_failure`.

    Raises:
        InputError: An option is out of its range; in a run: there is no conversation.

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
        window: Window | None = None,
        recall: int = 4,
        scope: Scope = "conversation",
        min_similarity: float = 0.3,
        rewrite: bool = False,
        conversation_id: str | Callable[[Mapping[str, Any]], str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__()
        if not isinstance(system, MemorySystem):
            raise InputError(f"system is a MemorySystem, not {system!r}; pass MemorySystem(url)")
        if recall < 0:
            raise InputError(f"recall={recall!r} is negative; pass how many messages to recall, 0 for none")
        self._system = system
        self._options = {
            "node_selector": selector if selector is not None else SemanticNodeSelector(),
            **options,
        }
        self._window = window
        self._recall = recall
        self._scope = scope
        self._min_similarity = min_similarity
        self._rewrite = rewrite
        self._given = conversation_id

    @classmethod
    def from_conn_string(cls, url: str | Path, *, owner: str = "user", **options: Any) -> Self:
        """Middleware on the database behind a URL; see `shared.shared_system` for how long it stays open.

        Args:
            url: As for `MemorySystem`.
            owner: Whose memory it is.
            **options: As for `ThreadMemMiddleware`.

        Example:
            >>> ThreadMemMiddleware.from_conn_string("sqlite://", conversation_id="first").name
            'ThreadMemMiddleware'
        """
        return cls(shared_system(url, owner), **options)

    def before_agent(self, state: ThreadMemState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Put the new human message into its thread, and recall from the others."""
        return run(self._enter(state, *self._run()), self._system.runtime)

    async def abefore_agent(self, state: ThreadMemState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Async `before_agent`."""
        return await arun(self._enter(state, *self._run()), self._system.runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        """Show the model the active thread instead of the whole list."""
        view = run(self._view(request, self._conversation()), self._system.runtime)
        messages = list(view)
        response = handler(request.override(messages=messages))
        _pass_on(request, view, messages)
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        """Async `wrap_model_call`."""
        view = await arun(self._view(request, self._conversation()), self._system.runtime)
        messages = list(view)
        response = await handler(request.override(messages=messages))
        _pass_on(request, view, messages)
        return response

    def after_agent(self, state: ThreadMemState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Store the turn."""
        run(route.store(self._conversation(), state["messages"]), self._system.runtime)
        return None

    async def aafter_agent(self, state: ThreadMemState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Async `after_agent`."""
        await arun(route.store(self._conversation(), state["messages"]), self._system.runtime)
        return None

    def _conversation(self) -> ThreadedConversation:
        return self._run()[0]

    def _run(self) -> tuple[ThreadedConversation, Lineage]:
        config = get_config()
        check_owner(config, self._system.owner)
        name = route.conversation_name(config, self._given)
        conversation = self._system.conversation(name, **self._options)._conversation
        return conversation, route.lineage_of(config, name)

    def _enter(
        self, state: ThreadMemState, conversation: ThreadedConversation, lineage: Lineage
    ) -> Flow[dict[str, Any] | None]:
        before = state.get("active_thread")
        routed = yield from route.route(
            conversation, state["messages"], before["message_id"] if before else None, lineage
        )
        if routed is None:
            return None
        found = yield from route.recall_elsewhere(
            conversation,
            text_of(routed.path[-1]),
            routed.path,
            self._recall,
            scope=self._scope,
            min_similarity=self._min_similarity,
            lineage=lineage,
        )
        update: dict[str, Any] = {"active_thread": routed.thread, "recalled": found}
        if self._rewrite and routed.messages is not None:
            update["messages"] = [RemoveMessage(REMOVE_ALL_MESSAGES), *routed.messages]
        return update

    def _view(self, request: ModelRequest[Any], conversation: ThreadedConversation) -> Flow[list[AnyMessage]]:
        state = cast("ThreadMemState", request.state)
        # What the tools have said is stored before each call: a summary may replace it in the list.
        yield from route.store(conversation, state["messages"])
        active = state.get("active_thread")
        if active is None:
            return request.messages
        thread = yield from route.thread_to(conversation, active["message_id"])
        found = recall_message(state.get("recalled") or [])
        window = bound(self._window, conversation.name)
        front, earlier, turn = _parts(request.messages, state["messages"], thread, active["message_id"])
        return cast("list[AnyMessage]", [*front, *found, *shown(earlier, turn, window)])


def _pass_on(request: ModelRequest[Any], view: Sequence[AnyMessage], left: Sequence[AnyMessage]) -> None:
    """Let messages that other middleware has added to its request get into the state, as they do without us:
    an agent takes over what was added to the list that it made the request of.
    """
    known = {id(message) for message in (*view, *request.messages)}
    request.messages.extend(message for message in left if id(message) not in known)


def _parts(
    request: Sequence[BaseMessage], state: Sequence[BaseMessage], thread: Sequence[BaseMessage], turn_id: str
) -> tuple[list[BaseMessage], Sequence[BaseMessage], list[BaseMessage]]:
    """A request in three parts: what is no part of the conversation, the thread so far, the turn at hand."""
    known = {message.id for message in state}

    def is_said(message: BaseMessage) -> bool:
        return message.id in known and not (isinstance(message, SystemMessage) or is_made_up(message))

    start = next((n for n, message in enumerate(request) if message.id == turn_id), None)
    if start is None:
        # The turn has grown so long that its beginning was summarised: the list is what is left of it.
        return [m for m in request if not is_said(m)], [], [m for m in request if is_said(m)]
    others = [message for message in request[:start] if not is_said(message)]
    front = [message for message in others if not isinstance(message, ToolMessage)]
    results = [message for message in others if isinstance(message, ToolMessage)]
    earlier: Sequence[BaseMessage] = with_results(thread[:-1], results) if results else thread[:-1]
    if any(is_made_up(message) for message in front):
        kept = start - len(front)
        earlier = earlier[max(len(earlier) - kept, 0) :]
    return front, earlier, list(request[start:])
