"""Tools with which an agent searches, reads, adds to and forgets the memory, sync and async.

A tool returns stored text inside a fenced block (see `recall.quoting`), and an error that the model can
correct, such as an unknown id, as a tool message with the status "error". Recall does not find the result of
a tool. The model names a message by its conversation and the number of its node, as in the blocks, or by its
`id`.

Each tool takes `owner`, the owner of a run: the name of a field of the run's context or `configurable`, or a
function of the run. By default it is the owner of the memory, and a run that names another person is refused.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import ensure_config
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.prebuilt import ToolRuntime
from langgraph.types import interrupt
from pydantic import BaseModel, Field

from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.common.inputs import is_whole
from langchain_threadmem.engine.flow import Flow, Sql, arun, run
from langchain_threadmem.engine.owners import OwnerOfRun
from langchain_threadmem.errors import InputError, NotFoundError, SessionNotFoundError
from langchain_threadmem.langgraph._conversations import (
    ConversationScope,
    check_memory,
    memory_of_run,
    searched,
)
from langchain_threadmem.langgraph._prompts import known_in, messages_in
from langchain_threadmem.langgraph._system import check_system, checked_owner
from langchain_threadmem.long_term.lists import verbs as catalogue
from langchain_threadmem.long_term.lists.verbs import ConversationInfo, ThreadInfo
from langchain_threadmem.maintenance.removal import forget
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.ids import name_of
from langchain_threadmem.messages.roles import SPOKEN
from langchain_threadmem.messages.text import plural
from langchain_threadmem.recall import verbs as recall_verbs
from langchain_threadmem.recall.options import RecallOptions
from langchain_threadmem.recall.quoting import enclosed, fenced, recalled, tagged
from langchain_threadmem.recall.recollections import answers_to
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.selection import append
from langchain_threadmem.tree import navigate, read, revise, trees
from langchain_threadmem.tree.conversation import found_tree_of
from langchain_threadmem.tree.navigate import MessageRef
from langchain_threadmem.tree.node import ConversationNode

Memory = ChatMemory | MemorySystem
CallRuntime = ToolRuntime[Any, Any] | None
"""The call of a tool by a graph; `None` outside of a graph."""

_MessageArgument = Annotated[
    int | str, Field(description="The number of the message's node, as shown in memory, or the message's id.")
]
_ConversationArgument = Annotated[
    str | None, Field(description="The conversation of the message, as shown in memory.", default=None)
]


_SCRATCHPAD = "__pregel_scratchpad"
"""LangGraph's key for the state of interrupts in the configuration of a run."""
_CHARACTERS_PER_TOKEN = 4


class _Query(BaseModel):
    query: Annotated[str, Field(description="What to look for: a question, or a few words.")]


class _Listed(BaseModel):
    conversation: Annotated[
        str | None,
        Field(description="The conversation whose threads are listed; without it, all conversations."),
    ] = None
    query: Annotated[
        str | None, Field(description="Words that a listed conversation contains; all without it.")
    ] = None
    cursor: Annotated[str | None, Field(description="The cursor at the end of the page before.")] = None


class _Named(BaseModel):
    message: _MessageArgument
    conversation: _ConversationArgument = None


class _Fact(BaseModel):
    fact: Annotated[str, Field(description="The fact, as a sentence that is clear by itself.")]
    replaces: Annotated[
        int | str | None,
        Field(description="The node or the id of an earlier fact that the fact updates or contradicts."),
    ] = None
    source: Annotated[
        str | None,
        Field(description="The id of the message that the fact comes from; by default the user's last one."),
    ] = None


def recall_tool(
    memory: ChatMemory | MemorySystem,
    *,
    conversation_id: str | None = None,
    scope: ConversationScope | None = None,
    k: int = 4,
    owner: OwnerOfRun | None = None,
    name: str = "recall",
    description: str = "Look up what was said earlier, in this conversation or another.",
) -> BaseTool:
    """A tool with which an agent searches the memory.

    The tool does not return what the model has already: the query, the message that the model is answering,
    and the messages of its prompt. With `ThreadMemMiddleware` these are the messages that the middleware
    shows in this turn, in another graph all messages of the state. Weak hits (`Recollection.weak`) are left
    out.

    Args:
        memory: A conversation, or a system.
        conversation_id: A conversation of the system; by default all conversations of the owner are searched.
        scope: One "conversation" or all of the "owner"; by default one if the first two arguments name it.
        k: Maximum number of messages and summaries.
        owner: The owner of a run; by default the owner of `memory`.
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
    check_memory(memory, conversation_id, scope, owner)

    def find(memory: Memory, call: CallRuntime, query: str) -> Flow[str]:
        conversation, chosen_scope = searched(memory, conversation_id, scope)
        options = RecallOptions(k, scope=chosen_scope)
        if call is None:
            known = known_in(memory._runtime, None, query, (yield from _unanswered(conversation)))
        else:
            known = known_in(memory._runtime, call.state, query)
        hits = yield from recall_verbs.recall(conversation._conversation, query, options, 0, known)
        shown = [hit for hit in hits if not hit.weak]
        answers = yield from answers_to(memory._runtime, shown, known)
        quoted = [recalled(hit, answer) for hit, answer in zip(shown, answers, strict=True)]
        return fenced(quoted) or "Nothing was said about it."

    return _tool(memory, owner, find, _Query, name, description)


def list_threads_tool(
    memory: ChatMemory | MemorySystem,
    *,
    conversation_id: str | None = None,
    limit: int = 20,
    owner: OwnerOfRun | None = None,
    name: str = "list_threads",
    description: str = "List the conversations, or the threads of a conversation, by their last use.",
) -> BaseTool:
    """A tool with which an agent lists conversations, and the threads of a conversation.

    Args:
        memory: A conversation, or a system.
        conversation_id: The only conversation of the system whose threads are listed; by default any.
        limit: Maximum number of conversations or threads of a page.
        owner: The owner of a run; by default the owner of `memory`.
        name: The name of the tool for the model.
        description: The description of the tool for the model.

    Raises:
        InputError: The arguments do not name a conversation or an owner.

    Example:
        >>> memory = ChatMemory(conversation_id="home", embeddings=False)
        >>> nodes = memory.append("How do I bake bread?", "With patience.")
        >>> list_threads_tool(memory).invoke({}).splitlines()[2][:48]
        '<thread conversation="home" node="2" title="How '
    """
    check_memory(memory, conversation_id, None, owner)

    def show(
        memory: Memory,
        call: CallRuntime,
        conversation: str | None = None,
        query: str | None = None,
        cursor: str | None = None,
    ) -> Flow[str]:
        if isinstance(memory, MemorySystem) and (conversation or conversation_id) is None:
            page = yield from catalogue.list_conversations(memory.runtime, query, limit=limit, cursor=cursor)
            entries = [_listed("conversation", item, {"conversation": item.id}) for item in page]
            return _paged(entries, page.cursor)
        chosen = yield from _existing(memory, conversation_id, conversation)
        threads = yield from catalogue.list_threads(chosen._conversation, limit, cursor)
        place = {"conversation": chosen.conversation_id}
        return _paged(
            [_listed("thread", item, {**place, "node": str(item.id)}) for item in threads], threads.cursor
        )

    return _tool(memory, owner, show, _Listed, name, description)


def read_thread_tool(
    memory: ChatMemory | MemorySystem,
    *,
    conversation_id: str | None = None,
    max_tokens: int = 4000,
    owner: OwnerOfRun | None = None,
    name: str = "read_thread",
    description: str = "Read the thread of a message found in memory: what was said before and after it.",
) -> BaseTool:
    """A tool with which an agent reads the whole thread of a message.

    The result contains the human and AI messages of the thread. Of a thread with more tokens it contains the
    messages around the given message, and the ids with which the model reads the rest.

    Args:
        memory: A conversation, or a system.
        conversation_id: The only conversation of the system that is read; by default any.
        max_tokens: Maximum number of tokens of the messages, at four characters for each token; the
            message itself is always returned, cut to this length.
        owner: The owner of a run; by default the owner of `memory`.
        name: The name of the tool for the model.
        description: The description of the tool for the model.

    Raises:
        InputError: The arguments do not name a conversation or an owner, or `max_tokens` is not positive.

    Example:
        >>> memory = ChatMemory(embeddings=False)
        >>> nodes = memory.append("My cat is called Ada", "Noted.")
        >>> read_thread_tool(memory).invoke({"message": 1}).splitlines()[-3:]
        ['Noted.', '</message>', '</memory>']
    """
    check_memory(memory, conversation_id, None, owner)
    if not is_whole(max_tokens, 1):
        raise InputError(
            f"max_tokens={max_tokens!r} is not a number of tokens; pass an integer of at least 1"
        )

    def read(
        memory: Memory, call: CallRuntime, message: MessageRef, conversation: str | None = None
    ) -> Flow[str]:
        chosen = yield from _existing(memory, conversation_id, conversation)
        node = yield from navigate.message(chosen._conversation, _reference(message))
        thread = yield from navigate.thread_of(chosen._conversation, node.id)
        return _excerpt(thread, node, chosen.conversation_id, _CHARACTERS_PER_TOKEN * max_tokens)

    return _tool(memory, owner, read, _Named, name, description)


def remember_tool(
    system: MemorySystem,
    *,
    conversation_id: str = "facts",
    owner: OwnerOfRun | None = None,
    name: str = "remember",
    description: str = (
        "Save a fact for later conversations. If it updates or contradicts an earlier fact, name that fact."
    ),
) -> BaseTool:
    """A tool with which an agent saves facts.

    Facts are AI messages of a separate conversation, each a thread: recall finds them, and they are listed,
    edited, forgotten and erased like other messages. A fact that replaces an earlier fact is a new version:
    the earlier version stays in the history, and recall does not find it. The `additional_kwargs` of a fact
    contain the id of its source message as `source_message`, and in a graph the thread of the run as
    `source_conversation`. Erasing the source message does not erase the fact.

    Args:
        system: The system.
        conversation_id: The conversation of the facts.
        owner: The owner of a run; by default the owner of `system`.
        name: The name of the tool for the model.
        description: The description of the tool for the model.

    Raises:
        InputError: An argument has the wrong type.

    Example:
        >>> system = MemorySystem(embeddings=False)
        >>> remember = remember_tool(system)
        >>> remember.invoke({"fact": "Ada drinks tea."})
        'Saved as message 1 of the conversation "facts".'
        >>> remember.invoke({"fact": "Ada drinks coffee.", "replaces": 1})
        'Saved as message 2 of the conversation "facts", in the place of message 1.'
        >>> [hit.node.message.content for hit in system.conversation("facts").recall("What does Ada drink?")]
        ['Ada drinks coffee.']
    """
    check_system(system)
    conversation_id = name_of("a conversation_id", conversation_id)
    checked_owner(owner)

    def save(
        memory: Memory,
        call: CallRuntime,
        fact: str,
        replaces: MessageRef | None = None,
        source: str | None = None,
    ) -> Flow[str]:
        assert isinstance(memory, MemorySystem)
        facts = memory.conversation(conversation_id)._conversation
        message = _fact(fact, replaces, source, call)
        if replaces is None:
            node = yield from append.begin(facts, message)
            return f'Saved as message {node.id} of the conversation "{conversation_id}".'
        yield from _existing(memory, conversation_id, None)
        old = yield from navigate.message(facts, _reference(replaces))
        node = yield from revise.edit(facts, old.id, message)
        return (
            f'Saved as message {node.id} of the conversation "{conversation_id}", in the place of message '
            f"{old.id}."
        )

    return _tool(system, owner, save, _Fact, name, description)


def forget_tool(
    memory: ChatMemory | MemorySystem,
    *,
    conversation_id: str | None = None,
    confirm: bool = True,
    purge: bool = True,
    owner: OwnerOfRun | None = None,
    name: str = "forget",
    description: str = "Forget a fact or another message for good, if the user asks for it.",
) -> BaseTool:
    """A tool with which an agent forgets a message, after a human has agreed.

    The tool refuses a message in the state of the calling graph, since the graph would store it again.

    The human is asked with LangGraph's `interrupt`, which requires a graph with a checkpointer. The value of
    the interrupt has the form of LangChain's `HumanInTheLoopMiddleware`, with the text of the message as the
    description; resume the run with `Command(resume=True)`, `Command(resume=False)`, or
    `Command(resume={"decisions": [{"type": "approve"}]})`, or "reject" for the type.

    Args:
        memory: A conversation, or a system.
        conversation_id: The only conversation of the system of which messages are forgotten; by default any.
        confirm: Whether a human is asked first.
        purge: Whether the message and its other versions are also removed from the history;
            `MemorySystem.scrub` then clears their bytes from the files. Otherwise the message stays in the
            history, and recall does not find it.
        owner: The owner of a run; by default the owner of `memory`.
        name: The name of the tool for the model.
        description: The description of the tool for the model.

    Raises:
        InputError: The arguments do not name a conversation or an owner.

    Example:
        >>> memory = ChatMemory(embeddings=False)
        >>> nodes = memory.append("My number is 555.", "Noted.")
        >>> forget_tool(memory, confirm=False).invoke({"message": 1})
        'Forgotten.'
        >>> [message.content for message in memory.messages]
        ['Noted.']
    """
    check_memory(memory, conversation_id, None, owner)

    def drop(memory: Memory, call: CallRuntime, message: MessageRef, conversation: str | None) -> Flow[str]:
        chosen = yield from _existing(memory, conversation_id, conversation)
        node = yield from navigate.message(chosen._conversation, _reference(message))
        if call is not None and node.message.id in [own.id for own in messages_in(call.state)]:
            raise InputError(
                f"message {message!r} belongs to the conversation of this run, whose state would store it "
                "again; forget it in a later conversation"
            )
        refusal = confirm and _refusal(
            name, node, {"message": message, "conversation": chosen.conversation_id}
        )
        if refusal:
            return refusal
        yield from forget.forget_message(chosen._conversation, node.id, purge=purge)
        return "Forgotten."

    def start(
        memory: Memory, call: CallRuntime, message: MessageRef, conversation: str | None = None
    ) -> Flow[str]:
        if confirm and _SCRATCHPAD not in ensure_config().get("configurable", {}):
            raise InputError(
                f"the tool {name!r} asks a human, which needs the run of a graph with a checkpointer; pass "
                "confirm=False to forget without asking"
            )
        return drop(memory, call, message, conversation)

    return _tool(memory, owner, start, _Named, name, description)


def _tool(
    memory: Memory,
    owner: OwnerOfRun | None,
    flow: Callable[..., Flow[str]],
    arguments: type[BaseModel],
    name: str,
    description: str,
) -> BaseTool:
    """A tool that runs a flow on the memory of the owner of a run."""

    # LangGraph passes its runtime to a parameter of exactly this type. langchain-core before 1.6 does not
    # resolve an annotation that is a string, so this module does not postpone their evaluation.
    def call(runtime: ToolRuntime[Any, Any] = None, **values: Any) -> str:  # type: ignore[assignment]
        owned = memory_of_run(memory, owner, ensure_config())
        return run(_answer(flow(owned, runtime, **values)), owned._runtime)

    async def acall(runtime: ToolRuntime[Any, Any] = None, **values: Any) -> str:  # type: ignore[assignment]
        owned = memory_of_run(memory, owner, ensure_config())
        return await arun(_answer(flow(owned, runtime, **values)), owned._runtime)

    return StructuredTool.from_function(
        call,
        acall,
        name=name,
        description=description,
        args_schema=arguments,
        handle_tool_error=True,
        handle_validation_error=str,
    )


def _answer(flow: Flow[str]) -> Flow[str]:
    """The result of a flow; an error that the model can correct becomes a `ToolException`."""
    try:
        return (yield from flow)
    except (InputError, NotFoundError) as error:
        raise ToolException(str(error)) from error


def _unanswered(memory: ChatMemory) -> Flow[BaseMessage | None]:
    """The last message of the active thread, if it is a human message without an answer."""
    tree = yield from found_tree_of(memory._conversation)
    if not tree:
        return None
    tip = yield from read.tip(memory._conversation)
    return tip.message if tip is not None and tip.message.type == "human" else None


def _existing(memory: Memory, only: str | None, given: str | None) -> Flow[ChatMemory]:
    """The existing conversation that a call names.

    Raises:
        InputError: The call names no conversation, or another than the only conversation of the tool.
        SessionNotFoundError: The conversation does not exist.
    """
    if isinstance(memory, ChatMemory):
        only = memory.conversation_id
    name = only if given is None else given
    if name is None:
        raise InputError("no conversation is named; pass conversation=... as shown in memory")
    if only is not None and name != only:
        raise InputError(f"the tool serves the conversation {only!r} alone, not {name!r}")
    name = name_of("a conversation", name)
    owner = memory._runtime.owner
    if (yield from Sql(lambda conn: trees.find(conn, owner, name))) is None:
        raise SessionNotFoundError(f"there is no conversation {name!r}; pass one that is shown in memory")
    return memory if isinstance(memory, ChatMemory) else memory.conversation(name)


def _reference(message: MessageRef) -> MessageRef:
    """The number of a node or the id of a message, as a model writes them."""
    return int(message) if isinstance(message, str) and message.isdecimal() else message


def _listed(tag: str, item: ConversationInfo | ThreadInfo, place: Mapping[str, str]) -> str:
    labels = {
        **place,
        "title": item.title,
        "messages": str(item.messages),
        "updated": item.updated.isoformat(timespec="seconds"),
    }
    return tagged(tag, labels, item.preview)


def _paged(items: Sequence[str], cursor: str | None) -> str:
    if not items:
        return "Nothing is in memory."
    more = "" if cursor is None else f'\nThere are more: pass the cursor "{cursor}".'
    return enclosed(items) + more


def _excerpt(thread: Sequence[ConversationNode], node: ConversationNode, conversation: str, most: int) -> str:
    """The human and AI messages around a node of a thread as a block."""
    spoken = [
        member for member in thread if member.message.type in SPOKEN and text_of(member.message).strip()
    ]
    if not spoken:
        return "The thread has no text."
    before = {member.id for member in thread[: [member.id for member in thread].index(node.id)]}
    center = min(sum(member.id in before for member in spoken), len(spoken) - 1)
    first, end, budget = center, center + 1, most - len(text_of(spoken[center].message))
    grows = True
    while grows:
        grows = False
        for at in (end, first - 1):
            size = len(text_of(spoken[at].message)) if 0 <= at < len(spoken) else budget + 1
            if size <= budget:
                first, end, budget, grows = min(first, at), max(end, at + 1), budget - size, True
    excerpt = [
        recalled(Recollection(member, 1.0, conversation_id=conversation)) for member in spoken[first:end]
    ]
    lines = [fenced(excerpt, longest=most)]
    for count, side, edge in ((first, "earlier", first - 1), (len(spoken) - end, "later", end)):
        if count:
            lines.append(f"{plural(count, f'{side} message')} left out: read message {spoken[edge].id}.")
    return "\n".join(lines)


def _fact(fact: str, replaces: MessageRef | None, source: str | None, call: CallRuntime) -> AIMessage:
    """A fact as a message, with the same id if a graph repeats the call of the tool after an interrupt."""
    if not fact.strip():
        raise InputError("the fact is empty; pass a sentence that is clear by itself")
    id_, origin = uuid4(), {"source_message": source}
    if call is not None:
        thread = (call.config.get("configurable") or {}).get("thread_id")
        id_ = uuid5(NAMESPACE_OID, f"{thread} {call.tool_call_id} {replaces} {fact}")
        if not source:
            asked = (message.id for message in reversed(messages_in(call.state)) if message.type == "human")
            origin = {"source_message": next(asked, None), "source_conversation": thread}
    known = {name: value for name, value in origin.items() if value is not None}
    return AIMessage(fact, id=str(id_), additional_kwargs=known)


def _refusal(name: str, node: ConversationNode, arguments: Mapping[str, Any]) -> str | None:
    """Ask a human whether a message is forgotten; return the answer for the model after a rejection.

    Raises:
        InputError: The run is resumed with another value than an approval or a rejection.
    """
    question = {
        "action_requests": [{"name": name, "args": dict(arguments), "description": text_of(node.message)}],
        "review_configs": [{"action_name": name, "allowed_decisions": ["approve", "reject"]}],
    }
    answer = interrupt(question)
    if isinstance(answer, bool):
        answer = {"decisions": [{"type": "approve" if answer else "reject"}]}
    match answer:
        case {"decisions": [{"type": "approve"}]}:
            return None
        case {"decisions": [{"type": "reject", **rest}]}:
            return str(rest.get("message") or "The user refused: the message is not forgotten.")
    raise InputError(
        f"nothing is forgotten: the answer of the human, {answer!r}, is not a decision; resume with "
        "True or False"
    )
