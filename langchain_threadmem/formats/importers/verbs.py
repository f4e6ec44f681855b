"""The verb that imports files: batches of conversations are read, compared with the database and written.

With `sort=True` the linear conversations of the files are then sorted into threads. Their metadata has
`"sorted": false` until they are sorted, so that a later import continues after an interruption.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from langchain_core.messages import AIMessage

from langchain_threadmem.common.inputs import Progress
from langchain_threadmem.engine.flow import Call, Flow, Sql
from langchain_threadmem.engine.runtime import Runtime
from langchain_threadmem.errors import InputError, ThreadMemError
from langchain_threadmem.formats.importers import queries
from langchain_threadmem.formats.importers.chats import (
    Bad,
    Chat,
    Chats,
    Entry,
    content_of,
    ordered,
    threads,
    tip_shown,
    with_stored_ids,
)
from langchain_threadmem.formats.importers.paths import ImportPaths
from langchain_threadmem.formats.importers.queries import Added, LastImport, NewNode, NewNodes, Stored
from langchain_threadmem.formats.importers.source import FAULTS, Source, problem_of
from langchain_threadmem.long_term.lists.queries import Profile
from langchain_threadmem.messages.codec import decode_stored, encode, text_of
from langchain_threadmem.messages.ids import LONGEST_ID, name_of
from langchain_threadmem.messages.records import reason
from langchain_threadmem.messages.typed_json import WriteOpaque
from langchain_threadmem.selection.moves import sort as moves
from langchain_threadmem.storage.schema import State
from langchain_threadmem.tree.conversation import Conversation
from langchain_threadmem.tree.nodes import NodeRow
from langchain_threadmem.tree.read import full_history

if TYPE_CHECKING:
    from langchain_threadmem.formats.importers.registry import ImportPlan

MESSAGES_AT_ONCE = 2_000
"""The number of messages after which a batch ends: about 0.2 s of work, and one transaction."""
PROBLEMS = 100
"""The number of problems that a report describes."""
_FEW = 3
"""The number of bad items below which a file is not taken for a file of another format."""
_AHEAD = 20
"""The number of conversations after a bad one that are read to tell whether most of a file is bad."""
_FOREIGN = "most items of the file have such problems: it is of another kind, or damaged"


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        format: The format of the files; several formats are separated by commas.
        conversations: The number of conversations in the files.
        new_conversations: The number of conversations that were new to the owner.
        messages: The number of messages in the files.
        new_messages: The number of messages that were new to the owner.
        updated_messages: The number of stored messages with another content than in the import before. The
            new content is a new version, which supersedes the stored one.
        skipped: The number of bad items that were skipped.
        problems: A sentence for each of the first 100 bad items.
        sorted: The number of conversations that were sorted into threads.
        moved: The number of messages that the sort has moved.
        opened: The number of moved messages that begin a thread; the others return to an earlier message.
        files: The number of files with conversations.
        ignored: The first 100 paths of files in folders and archives that have none of the formats.
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
    files: int = 1
    ignored: tuple[str, ...] = ()
    updated_messages: int = 0


def import_file(
    runtime: Runtime,
    path: ImportPaths,
    format: str | None = None,
    on_progress: Progress | None = None,
    skip_bad: bool = False,
    sort: bool = False,
    on_sort: Progress | None = None,
) -> Flow[ImportReport]:
    """Import the conversations of files; see `MemorySystem.import_file`."""
    # The importers of all formats are loaded by the first import only.
    from langchain_threadmem.formats.importers.registry import ImportPlan

    plan = yield from Call(lambda: ImportPlan(path, format))
    reader = _ChatReader(plan, skip_bad)
    try:
        formats = dict.fromkeys(recognised.format.name for recognised in plan.files)
        report = ImportReport(
            ", ".join(formats), files=len(plan.files), ignored=tuple(plan.ignored[:PROBLEMS])
        )
        imported: dict[str, None] = {}
        while True:
            batch = yield from Call(reader.next_batch)
            chats = [(one.chat, one.format) for one in batch.chats]
            # Not in a transaction of a reader, whose mapping of the database file would fill the memory.
            lookup = partial(queries.stored, owner=runtime.owner, chats=chats)
            stored = yield from Sql(lookup, write=True)
            yield from _join(runtime, batch, stored)
            new_nodes = yield from Call(partial(_new_nodes, batch, stored, runtime.parts.write, skip_bad))
            added = Added(0, 0, 0)
            if new_nodes:
                added = yield from Sql(partial(queries.add, owner=runtime.owner, chats=new_nodes), write=True)
            report = _with_counts(report, batch, added)
            if sort:
                imported |= dict.fromkeys(one.name for one in batch.chats)
            if on_progress is not None:
                on_progress(reader.position, reader.size)
            if batch.error is not None:
                raise batch.error
            if batch.is_last:
                break
    finally:
        reader.close()
        plan.close()
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
class _ReadChat:
    """A conversation that was read from a file.

    Attributes:
        chat: The conversation.
        format: The format of the file.
        label: The path of the file.
        time: The time of the file.
        name: The name of the conversation in the memory.
    """

    chat: Chat
    format: str
    label: str
    time: float
    name: str


@dataclass(slots=True)
class _ChatBatch:
    """Conversations of files that are written together.

    Attributes:
        chats: The conversations.
        problems: The problems of bad items.
        error: The error that ends the import after this batch.
        is_last: Whether the files end with the batch.
    """

    chats: list[_ReadChat] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    error: ThreadMemError | None = None
    is_last: bool = False

    def refuse(self, problem: str, label: str, skip: bool, advice: str = "") -> None:
        """Add the problem of a bad item, which ends the import unless bad items are skipped."""
        self.problems.append(problem)
        if not skip and self.error is None:
            advice = advice or "--skip-bad (skip_bad=True) skips this item"
            self.error = InputError(f"{label}: {problem}. The items before it were imported; {advice}")

    def refuse_file(self, label: str) -> None:
        """Refuse a file of which most items are bad: it has another format, and would become a ruin."""
        self.chats = [one for one in self.chats if one.label != label]
        self.error = InputError(
            f"{label}: most items of the file cannot be imported, so none was: {self.problems[-1]}; "
            "the file is of another kind, or damaged"
        )


_WRITTEN = object()
"""The end of a batch: what was read is written before more is read."""


class _ChatReader:
    """Reads the conversations of the files of a plan, one after the other; branches of conversations last.

    Attributes:
        position: The number of bytes that were read.
        size: The number of bytes of all files.
    """

    def __init__(self, plan: ImportPlan, skip_bad: bool) -> None:
        self._skip_bad = skip_bad
        self.size = sum(recognised.file.size for recognised in plan.files)
        self._plan = plan
        self._done = 0
        self._source: Source | None = None
        self._bad = self._good = 0
        self._branches: list[_ReadChat] = []
        self._chats = self._read()

    @property
    def position(self) -> int:
        """The number of bytes that were read."""
        return self._done + (self._source.position if self._source is not None else 0)

    def close(self) -> None:
        """Close the file that is read."""
        self._chats.close()

    def next_batch(self) -> _ChatBatch:
        """The next conversations, up to an error."""
        batch, messages = _ChatBatch(), 0
        while messages < MESSAGES_AT_ONCE and batch.error is None:
            try:
                one = next(self._chats, None)
            except ThreadMemError as error:  # The file is damaged; the items before the damage are imported.
                label = "" if self._source is None else self._source.label
                batch.error = error if label in str(error) else type(error)(f"{label}: {error}")
                break
            if one is None:
                batch.is_last = True
                break
            messages += 1
            if isinstance(one, _ReadChat):
                batch.chats.append(one)
                messages += len(one.chat.ids)
                if one.chat.branch_of:  # The conversation that it continues is written before it is read.
                    break
            elif isinstance(one, Bad):
                self._refuse(one, batch)
            elif isinstance(one, Source):
                batch.refuse_file(one.label)
            else:
                break
        if self._source is not None and _is_foreign(self._bad, self._source.read) and batch.error is None:
            batch.refuse_file(self._source.label)
        return batch

    def _refuse(self, bad: Bad, batch: _ChatBatch) -> None:
        assert self._source is not None
        self._bad += 1
        advice, source = "", self._source
        label = source.label
        if not self._skip_bad:
            is_empty = not self._good
            ahead = [*islice(self._chats, _AHEAD)]
            refused = self._bad + sum(isinstance(one, Bad) for one in ahead)
            is_empty &= len(ahead) < _AHEAD and not any(isinstance(one, _ReadChat) for one in ahead)
            if is_empty or _is_foreign(refused, source.read):
                advice = _FOREIGN
        several = self._skip_bad and len(self._plan.files) > 1
        batch.refuse(f"{label}: {bad.problem}" if several else bad.problem, label, self._skip_bad, advice)

    def _read(self) -> Generator[_ReadChat | Bad | Source | object]:
        """The conversations and bad items, each file of which most items are bad, and the ends of batches."""
        for recognised in self._plan.files:
            self._bad = self._good = 0
            self._source = source = self._plan.open(recognised)
            try:
                for one in _readable(recognised.format.chats(source)):
                    if isinstance(one, Bad):
                        yield one
                        continue
                    self._good += 1
                    read = _ReadChat(one, recognised.format.name, source.label, source.time, one.name)
                    if one.branch_of:
                        self._branches.append(read)
                    else:
                        yield read
                if _is_foreign(self._bad, source.read):
                    yield source
            finally:
                source.close()
            self._done, self._source = self._done + recognised.file.size, None
        if self._branches:
            yield _WRITTEN
        yield from self._branches


def _readable(chats: Chats) -> Chats:
    """The conversations of a file; a file with values of other types than those of its format is bad."""
    try:
        yield from chats
    except ThreadMemError:
        raise
    except FAULTS as error:
        yield Bad(problem_of(error, "the file"))


def _is_foreign(bad: int, read: int) -> bool:
    """Whether most items of a file are bad: it is of another kind."""
    return bad >= _FEW and 2 * bad > read


def _join(runtime: Runtime, batch: _ChatBatch, stored: Sequence[Stored]) -> Flow[None]:
    """Give the messages that a branch has copied from its conversation the ids of their originals."""
    for one, found in zip(batch.chats, stored, strict=True):
        one.name = found.name
        if not one.chat.branch_of or not found.ids or found.name == one.chat.name:
            continue
        history = yield from full_history(Conversation(runtime, found.name))
        one.chat = yield from Call(partial(with_stored_ids, one.chat, one.time, history.history))


def _new_nodes(
    batch: _ChatBatch, stored: Sequence[Stored], write: WriteOpaque, skip_bad: bool
) -> list[NewNodes]:
    """The new nodes of a batch; conversations that cannot be stored are removed from the batch."""
    new_nodes: dict[int, NewNodes] = {}
    read = Counter(one.label for one in batch.chats)
    bad: dict[str, list[str]] = {}
    chats: list[_ReadChat] = []
    for one, found in zip(batch.chats, stored, strict=True):
        try:
            nodes = _nodes_of(one, found, write)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            # The fields of a message may have any type; validation raises one of these errors.
            problem = str(error) if isinstance(error, InputError) else reason(error)
            prefix = "" if problem.startswith(one.chat.where) else f"{one.chat.where}: "
            bad.setdefault(one.label, []).append(f"{prefix}{problem}")
            continue
        if skip_bad or not bad:  # What follows a bad item is read to know whether most items are bad.
            if nodes is not None:
                new_nodes[len(chats)] = nodes
            chats.append(one)
    batch.chats = chats
    for label, problems in bad.items():
        is_foreign = _is_foreign(len(problems), read[label])
        for problem in problems if skip_bad else problems[:1]:
            batch.refuse(
                problem, label, skip_bad, _FOREIGN if is_foreign or len(problems) == read[label] else ""
            )
        if is_foreign and skip_bad:
            batch.refuse_file(label)
    return [nodes for n, nodes in new_nodes.items() if chats[n] in batch.chats]


def _nodes_of(one: _ReadChat, found: Stored, write: WriteOpaque) -> NewNodes | None:
    """The new nodes of a conversation, or `None` if neither its messages nor its profile are new."""
    chat, ids = one.chat, found.ids
    is_branch = found.profile is not None and found.name in chat.branch_of
    is_piece = chat.goes_on or chat.is_part
    ids_read = "" if is_piece else chat.fingerprint
    imported = LastImport(chat.title, chat.archived is not None, chat.tip, ids_read)
    profile = Profile(chat.title, {queries.SOURCE: one.format, **chat.metadata}, chat.archived)
    is_stored = all(id in ids for id in chat.ids)
    if is_stored and (
        is_branch or not chat.ids or (_is_known(found, imported, profile) and not found.versions)
    ):
        return None
    name_of("the name of a conversation", found.name)
    is_part = is_branch or is_piece
    if ids and not is_part and not any(id in ids for id in chat.ids):
        raise InputError(queries.another(chat.where, chat.name))
    entries = ordered(chat, one.time)
    live = Counter(entry.id for entry in entries if entry.state == State.LIVE)
    if max(live.values(), default=1) > 1:
        repeated = live.most_common(1)[0][0]
        raise InputError(f"{chat.where} has two messages with the id {repeated!r}; remove one of them")
    replaced = {
        entry.id: versions[0]
        for entry in entries
        if (versions := found.versions.get(entry.id)) and _is_changed(entry, versions)
    }
    if is_stored and not replaced and _is_known(found, imported, profile):
        return None
    new = [
        _new_node(_with_state(entry, replaced.get(entry.id)), write)
        for entry in entries
        if entry.id not in ids or entry.id in replaced
    ]
    if threads(entries) == 1:
        profile = profile._replace(metadata={**profile.metadata, queries.SORTED: False})
    return NewNodes(
        chat.where,
        found.name,
        new,
        {entry.key: entry.id for entry in entries},
        tip_shown(chat.tip, entries),
        new[0].created if new and chat.created is None else chat.created or one.time,
        profile,
        imported,
        is_branch,
        is_part,
        replaced,
    )


def _is_changed(entry: Entry, versions: Sequence[NodeRow]) -> bool:
    """Whether the content of a message is another one than that of each stored version.

    An answer that is the beginning of the stored answer is from an export before, or was not complete.
    """
    message = entry.make()
    stored = decode_stored([(row.message, row.body, row.role) for row in versions])
    if content_of(message) in map(content_of, stored):
        return False
    text, known = text_of(message), text_of(stored[0])
    is_part = type(message) is type(stored[0]) and len(text) < len(known) and known.startswith(text)
    return not (is_part and isinstance(message, AIMessage) and not message.tool_calls)


def _with_state(entry: Entry, old: NodeRow | None) -> Entry:
    """A message with the state of its stored version, if that was replaced here."""
    if old is None or old.state != State.SUPERSEDED or entry.state != State.LIVE:
        return entry
    return replace(entry, state=State.SUPERSEDED)


def _is_known(found: Stored, imported: LastImport, profile: Profile) -> bool:
    """Whether the last import of a conversation has read the same values."""
    metadata = found.profile.metadata if found.profile is not None else {}
    return found.imported == imported and all(
        metadata.get(name) == value for name, value in profile.metadata.items()
    )


def _new_node(entry: Entry, write: WriteOpaque) -> NewNode:
    name_of("a message id", entry.id, most=LONGEST_ID)
    message = entry.make()
    assert entry.time is not None
    return NewNode(entry, message.type, encode(message, write), entry.time)


def _with_counts(report: ImportReport, batch: _ChatBatch, added: Added) -> ImportReport:
    return replace(
        report,
        conversations=report.conversations + sum(not one.chat.goes_on for one in batch.chats),
        new_conversations=report.new_conversations + added.conversations,
        messages=report.messages + sum(len(one.chat.ids) for one in batch.chats),
        new_messages=report.new_messages + added.messages,
        updated_messages=report.updated_messages + added.updated,
        skipped=report.skipped + len(batch.problems),
        problems=(*report.problems, *batch.problems)[:PROBLEMS],
    )
