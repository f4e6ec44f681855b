"""The verb that imports a file: batches of conversations are read, compared with the database and written.

With `sort=True` the linear conversations of the file are then sorted into threads. Their metadata has
`"sorted": false` until they are sorted, so that a later import continues after an interruption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from langchain_threadmem.catalogue.queries import Profile
from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.importers import queries, registry
from langchain_threadmem.importers.chats import Bad, Chat, Chats, ordered, threads, tip_shown
from langchain_threadmem.importers.queries import Added, NewNode, NewNodes
from langchain_threadmem.importers.source import Source
from langchain_threadmem.messages.codec import encode
from langchain_threadmem.messages.ids import LONGEST_ID, name_of
from langchain_threadmem.messages.records import reason
from langchain_threadmem.messages.typed_json import Writer
from langchain_threadmem.storage.schema import State
from langchain_threadmem.threads.moves import sort as moves
from langchain_threadmem.tree.conversation import Conversation

MESSAGES_AT_ONCE = 2_000
"""The number of messages after which a batch ends: about 0.2 s of work, and one transaction."""
PROBLEMS = 100
"""The number of problems that a report describes."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        format: The format of the file.
        conversations: The number of conversations in the file.
        new_conversations: The number of conversations that were new to the owner.
        messages: The number of messages in the file.
        new_messages: The number of messages that were new to the owner.
        skipped: The number of bad items that were skipped.
        problems: A sentence for each of the first 100 bad items.
        sorted: The number of conversations that were sorted into threads.
        moved: The number of messages that the sort has moved.
        opened: The number of moved messages that begin a thread; the others return to an earlier message.
    """

    format: str
    conversations: int = 0
    new_conversations: int = 0
    messages: int = 0
    new_messages: int = 0
    skipped: int = 0
    problems: tuple[str, ...] = ()
    sorted: int = 0
    moved: int = 0
    opened: int = 0


def import_file(
    runtime: Runtime,
    path: str | Path,
    format: str | None = None,
    on_progress: Progress | None = None,
    skip_bad: bool = False,
    sort: bool = False,
    on_sort: Progress | None = None,
) -> Flow[ImportReport]:
    """Import the conversations of a file; see `MemorySystem.import_file`."""
    registry.check(format)
    source = yield from Call(lambda: Source(path))
    try:
        file_format = yield from Call(lambda: registry.format_of(source, format, path))
        chats, report = file_format.chats(source), ImportReport(file_format.name)
        imported: dict[str, None] = {}
        while True:
            batch = yield from Call(partial(_next_batch, chats, skip_bad))
            names = [chat.name for chat in batch.chats]
            stored = yield from Sql(partial(queries.stored_ids, owner=runtime.owner, names=names))
            new_nodes = yield from Call(
                partial(
                    _new_nodes, batch, stored, source.time, file_format.name, runtime.parts.write, skip_bad
                )
            )
            added = Added(0, 0)
            if new_nodes:
                added = yield from Sql(partial(queries.add, owner=runtime.owner, chats=new_nodes), write=True)
            report = _with_counts(report, batch, added)
            if sort:
                imported |= dict.fromkeys(chat.name for chat in batch.chats)
            if on_progress is not None:
                on_progress(source.position, source.size)
            if batch.error is not None:
                raise type(batch.error)(f"{path}: {batch.error}") from batch.error
            if batch.is_last:
                break
    finally:
        source.close()
    return (yield from _sort(runtime, imported, report, on_sort)) if sort else report


def _sort(
    runtime: Runtime, names: Iterable[str], report: ImportReport, on_sort: Progress | None
) -> Flow[ImportReport]:
    """Sort the conversations that are not sorted yet."""
    unsorted = yield from Sql(partial(queries.unsorted, owner=runtime.owner, names=names))
    sorted_messages, total = 0, sum(unsorted.values())
    for name, messages in unsorted.items():

        def update(
            done: int, turns: int, messages: int = messages, sorted_messages: int = sorted_messages
        ) -> None:
            if on_sort is not None:
                on_sort(sorted_messages + messages * done // turns, total)

        sort_moves = yield from moves.sort(Conversation(runtime, name), progress=update)
        yield from Sql(partial(queries.mark_sorted, owner=runtime.owner, name=name), write=True)
        sorted_messages += messages
        report = replace(
            report,
            sorted=report.sorted + 1,
            moved=report.moved + len(sort_moves),
            opened=report.opened + sum(move.parent_id is None for move in sort_moves),
        )
    return report


@dataclass(slots=True)
class _Batch:
    """Conversations of a file that are written together.

    Attributes:
        chats: The conversations.
        problems: The problems of bad items.
        error: The error that ends the import after this batch.
        is_last: Whether the file ends with the batch.
    """

    chats: list[Chat] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    error: ThreadMemError | None = None
    is_last: bool = False

    def refuse(self, problem: str, skip: bool) -> None:
        """Add the problem of a bad item, which ends the import unless bad items are skipped."""
        self.problems.append(problem)
        if not skip and self.error is None:
            self.error = InputError(
                f"{problem}. The items before it were imported; --skip-bad (skip_bad=True) skips this item"
            )


def _next_batch(chats: Chats, skip_bad: bool) -> _Batch:
    batch, count = _Batch(), 0
    try:
        while count < MESSAGES_AT_ONCE and batch.error is None:
            chat = next(chats, None)
            if chat is None:
                batch.is_last = True
                break
            count += 1
            if isinstance(chat, Bad):
                batch.refuse(chat.problem, skip_bad)
            else:
                batch.chats.append(chat)
                count += len(chat.ids)
    except ThreadMemError as error:  # The file is damaged; the items before the damage are imported.
        batch.error = error
    return batch


def _new_nodes(
    batch: _Batch,
    stored: Mapping[str, Collection[str]],
    default: float,
    format: str,
    write: Writer,
    skip_bad: bool,
) -> list[NewNodes]:
    """The new nodes of a batch; conversations that cannot be stored are removed from the batch."""
    new_nodes, chats = [], []
    for chat in batch.chats:
        try:
            nodes = _nodes_of(chat, stored.get(chat.name, ()), default, format, write)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # The fields of a message may have any type; validation raises one of these errors.
            problem = str(error) if isinstance(error, InputError) else reason(error)
            prefix = "" if problem.startswith(chat.where) else f"{chat.where}: "
            batch.refuse(f"{prefix}{problem}", skip_bad)
            if not skip_bad:
                break
        else:
            chats.append(chat)
            if nodes is not None:
                new_nodes.append(nodes)
    batch.chats = chats
    return new_nodes


def _nodes_of(
    chat: Chat, stored: Collection[str], default: float, format: str, write: Writer
) -> NewNodes | None:
    if all(id in stored for id in chat.ids):
        return None
    name_of("the name of a conversation", chat.name)
    entries = ordered(chat, default)
    live = Counter(entry.id for entry in entries if entry.state == State.LIVE)
    if max(live.values(), default=1) > 1:
        repeated = live.most_common(1)[0][0]
        raise InputError(f"{chat.where} has two messages with the id {repeated!r}; remove one of them")
    nodes = []
    for entry in entries:
        if entry.id in stored:
            continue
        name_of("a message id", entry.id, most=LONGEST_ID)
        message = entry.make()
        assert entry.time is not None
        nodes.append(NewNode(entry, message.type, encode(message, write), entry.time))
    return NewNodes(
        chat.where,
        chat.name,
        nodes,
        {entry.key: entry.id for entry in entries},
        tip_shown(chat.tip, entries),
        nodes[0].created if nodes and chat.created is None else chat.created or default,
        Profile(
            chat.title,
            {"source": format, **({queries.SORTED: False} if threads(entries) == 1 else {})},
            chat.archived,
        ),
    )


def _with_counts(report: ImportReport, batch: _Batch, added: Added) -> ImportReport:
    return replace(
        report,
        conversations=report.conversations + sum(not chat.goes_on for chat in batch.chats),
        new_conversations=report.new_conversations + added.conversations,
        messages=report.messages + sum(len(chat.ids) for chat in batch.chats),
        new_messages=report.new_messages + added.messages,
        skipped=report.skipped + len(batch.problems),
        problems=(*report.problems, *batch.problems)[:PROBLEMS],
    )
