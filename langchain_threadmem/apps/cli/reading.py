"""The commands `list`, `show`, `search` and `stats`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from langchain_threadmem.apps.cli.arguments import (
    Access,
    command,
    conversation_of,
    print_documents,
    print_json,
    progress_bar,
)
from langchain_threadmem.errors import InputError

if TYPE_CHECKING:
    from langchain_threadmem.chat_memory import ChatMemory
    from langchain_threadmem.maintenance.statistics import Statistics
    from langchain_threadmem.memory_system import MemorySystem
    from langchain_threadmem.recall.results import Recollection
    from langchain_threadmem.selection.moves.corrections import Doubt
    from langchain_threadmem.storage.statements import Conn
    from langchain_threadmem.tree.node import ConversationNode


@command(
    "list",
    examples=["list", "list --db memory.db --limit 10", "list monday --db memory.db --json"],
    database="argument",
    conversation="optional",
    json="an array of conversations or of threads",
)
@click.option("--limit", metavar="N", type=int, default=50, help="The maximum number.")
@click.option("--archived", is_flag=True, help="List archived conversations too.")
def list_(access: Access, conversation: str | None, limit: int, archived: bool, as_json: bool) -> None:
    """List conversations or threads by their last use."""
    with access.open(read_only=True) as system:
        if conversation is not None:
            infos: Sequence[Any] = conversation_of(system, conversation).list_threads(limit=limit)
        else:
            infos = system.list_conversations(limit=limit, archived="both" if archived else False)
    if as_json:
        print_json(infos)
    else:
        from langchain_threadmem.apps.cli import rich_output

        rich_output.write(rich_output.list_infos(infos))


@command(
    "show",
    examples=["show memory.db", "show monday --db memory.db", "show monday --db memory.db --doubtful"],
    database="argument",
    conversation="optional",
    json="an array of conversations, or of the messages of CONVERSATION",
)
@click.option("--doubtful", is_flag=True, help="List the messages of CONVERSATION in doubtful places.")
def show(access: Access, conversation: str | None, doubtful: bool, as_json: bool) -> None:
    """Draw a conversation, or list the conversations."""
    if doubtful and conversation is None:
        raise InputError("--doubtful requires a conversation; pass its name after the database")
    from langchain_threadmem.apps.cli import rich_output

    with access.open(read_only=True) as system:
        if conversation is None:
            # Read one by one, since all messages of all conversations may not fit into memory.
            histories = ((name, system.conversation(name).history) for name in system.conversations())
            if as_json:
                print_json([_counted(name, history) for name, history in histories])
            else:
                rich_output.write(rich_output.list_conversations(histories))
            return
        memory = conversation_of(system, conversation)
        doubts = memory.doubtful() if doubtful else []
        history = [] if doubtful else memory.history
        forgotten = _forgotten(system, memory.conversation_id)
    if as_json:
        shown = [_message(node) | {"forgotten": forgotten.get(node.id)} for node in history]
        print_json(list(map(_doubt, doubts)) if doubtful else shown)
    elif doubtful:
        rich_output.write(rich_output.list_doubts(doubts))
    else:
        tree = rich_output.draw_tree(history, reasons=True, forgotten=forgotten)
        rich_output.write(tree, rich_output.list_threads(history))


@command(
    "search",
    examples=[
        'search "how long does the dough rest?" --db memory.db',
        'search "trip to Lisbon" --conversation monday --context 2',
        "search Lisbon --words --json",
    ],
    json="an array of hits",
)
@click.argument("query")
@click.option(
    "--conversation", metavar="NAME", help="Search this conversation.  [default: all conversations]"
)
@click.option("--limit", metavar="N", type=int, default=5, help="The number of hits.")
@click.option("--context", metavar="N", type=int, default=1, help="Messages shown before each hit.")
@click.option("--words", is_flag=True, help="Search by words alone, without the embedding model.")
@click.option(
    "--read-only",
    is_flag=True,
    help="Write no index of new messages; they are read for this search and found by their words.",
)
def search(
    access: Access,
    query: str,
    conversation: str | None,
    limit: int,
    context: int,
    words: bool,
    read_only: bool,
    as_json: bool,
) -> None:
    """Find messages and summaries by words and by meaning.

    QUERY is a question, or words. Each hit is shown with its reason.
    """
    with access.open(read_only=read_only, embeddings=False if words else None) as system:
        names = system.conversations()
        hits: Sequence[Recollection] = []
        if conversation is not None:
            memory = conversation_of(system, conversation)
            _index_words(system, memory)
            hits = memory.recall(query, limit, context)
        elif names:
            memory = system.conversation(names[0])
            _index_words(system, None)
            hits = memory.recall(query, limit, context, scope="owner")
    if as_json:
        print_json(list(map(_hit, hits)))
    else:
        from langchain_threadmem.apps.cli import rich_output

        rich_output.write(rich_output.show_recall(query, hits, named=True))


def _index_words(system: MemorySystem, memory: ChatMemory | None) -> None:
    """Index the words of a conversation, or of all, since this process ends before the background has."""
    from langchain_threadmem.engine.flow import run
    from langchain_threadmem.index.catch_up_words import catch_up_words
    from langchain_threadmem.tree.conversation import found_tree_of

    runtime = system.runtime
    tree = None if memory is None else run(found_tree_of(memory._conversation), runtime)
    with progress_bar("index") as update:
        run(catch_up_words(runtime, tree, whole=True, on_progress=update), runtime)


@command(
    "stats",
    examples=["stats", "stats --db memory.db --json", "stats memory.db --everybody"],
    database="argument",
    everybody=True,
    json="the counts, and sizes in bytes",
)
def stats(access: Access, as_json: bool) -> None:
    """Count the data of an owner, and measure the database."""
    found = _statistics(access)
    if as_json:
        print_documents(access, {each.owner: asdict(each) for each in found})
    else:
        from langchain_threadmem.apps.cli import rich_output

        rich_output.write(rich_output.show_statistics(found))


def _statistics(access: Access) -> list[Statistics]:
    found = []
    for one in access.each():
        with one.open(read_only=True) as system:
            found.append(system.stats())
    return found


@command(
    "owners",
    examples=["owners", "owners memory.db --json"],
    database="argument",
    owner=False,
    json="an array of owners with their numbers of conversations and messages",
)
def owners(access: Access, as_json: bool) -> None:
    """List the owners of a database."""
    found = _statistics(replace(access, everybody=True))
    if as_json:
        print_json(
            [
                {"owner": each.owner, "conversations": each.conversations, "messages": each.messages}
                for each in found
            ]
        )
    else:
        from langchain_threadmem.apps.cli import rich_output

        rich_output.write(rich_output.list_owners(found))


def _forgotten(system: MemorySystem, conversation: str) -> Mapping[int, datetime]:
    """The times at which messages of a conversation were forgotten, by their numbers."""
    from langchain_threadmem.index.units import queries
    from langchain_threadmem.tree import trees

    def read(conn: Conn) -> dict[int, float]:
        tree = trees.find(conn, system.owner, conversation)
        return {} if tree is None else queries.forgotten(conn, tree)

    return {
        seq: datetime.fromtimestamp(time, UTC) for seq, time in system.runtime.database.read(read).items()
    }


def _counted(name: str, history: Sequence[ConversationNode]) -> dict[str, Any]:
    from langchain_threadmem.tree import graph
    from langchain_threadmem.tree.node import is_said

    nodes = graph.living(history)
    return {"conversation": name, "messages": sum(map(is_said, nodes)), "threads": len(graph.leaves(nodes))}


def _message(node: ConversationNode) -> dict[str, Any]:
    """A message with its place, for JSON."""
    from langchain_threadmem.messages.codec import text_of
    from langchain_threadmem.tree.node import probability_of

    return {
        "id": node.id,
        "parent": node.parent_id,
        "message_id": node.message.id,
        "role": node.message.type,
        "text": text_of(node.message),
        "time": node.time,
        "state": node.state.label,
        "superseded_by": node.superseded_by,
        "reason": None if node.placement is None else node.placement.reason,
        "probability": probability_of(node),
    }


def _doubt(doubt: Doubt) -> dict[str, Any]:
    alternative = doubt.runner_up
    return _message(doubt.node) | {
        "reason": doubt.reason,
        "probability": doubt.probability,
        "other": {
            "parent": alternative.parent_id,
            "probability": alternative.probability,
            "title": alternative.title,
        },
    }


def _hit(hit: Recollection) -> dict[str, Any]:
    reason = hit.why
    return {
        "conversation": hit.conversation_id,
        "rank": hit.rank,
        "score": round(float(hit.score), 6),
        "why": str(reason),
        "terms": list(reason.terms),
        "similarity": None if reason.similarity is None else round(float(reason.similarity), 6),
        "message": _message(hit.node),
        "context": [_message(node) for node in hit.thread if node.id != hit.node.id],
    }
