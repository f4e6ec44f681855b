"""The commands `list`, `show`, `search` and `stats`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from langchain_threadmem.cli.arguments import (
    Commands,
    add_command,
    add_conversation,
    conversation_of,
    open_memory,
    print_json,
)
from langchain_threadmem.errors import InputError

if TYPE_CHECKING:
    from langchain_threadmem.catalogue.verbs import Archived
    from langchain_threadmem.recall.results import Recollection
    from langchain_threadmem.threads.moves.corrections import Doubt
    from langchain_threadmem.tree.node import ConversationNode


def register(commands: Commands) -> None:
    listing = add_command(
        commands,
        "list",
        _list,
        "list conversations, or the threads of one, by their last use",
        examples=["list", "list --db memory.db --limit 10", "list monday --db memory.db --json"],
        database="argument",
        json="an array of conversations or of threads",
    )
    add_conversation(listing, "the conversation whose threads are listed")
    listing.add_argument("--limit", metavar="N", type=int, default=50, help="the maximum number; default: 50")
    listing.add_argument("--archived", action="store_true", help="list archived conversations too")

    show = add_command(
        commands,
        "show",
        _show,
        "list the conversations of a database, or draw a conversation",
        examples=["show memory.db", "show monday --db memory.db", "show monday --db memory.db --doubtful"],
        database="argument",
        json="an array of conversations, or of the messages of CONVERSATION",
    )
    add_conversation(show, "the conversation to draw")
    show.add_argument(
        "--doubtful", action="store_true", help="list the messages of CONVERSATION in doubtful places"
    )

    search = add_command(
        commands,
        "search",
        _search,
        "find messages and summaries by words and by meaning, with the reason for each hit",
        examples=[
            'search "how long does the dough rest?" --db memory.db',
            'search "trip to Lisbon" --conversation monday --context 2',
            "search Lisbon --words --json",
        ],
        json="an array of hits",
    )
    search.add_argument("query", metavar="QUERY", help="a question, or words")
    search.add_argument(
        "--conversation", metavar="NAME", help="search this conversation; default: all conversations"
    )
    search.add_argument("--limit", metavar="N", type=int, default=5, help="the number of hits; default: 5")
    search.add_argument(
        "--context", metavar="N", type=int, default=1, help="messages shown before each hit; default: 1"
    )
    search.add_argument(
        "--words", action="store_true", help="search by words alone, without the embedding model"
    )
    search.add_argument(
        "--read-only",
        action="store_true",
        help="write no index of new messages; they are read for this search and found by their words",
    )

    add_command(
        commands,
        "stats",
        _stats,
        "count the data of an owner, and measure the database",
        examples=["stats", "stats --db memory.db --json"],
        database="argument",
        json="the counts, and sizes in bytes",
    )


def _list(options: argparse.Namespace) -> None:
    with open_memory(options, read_only=True) as system:
        if options.conversation is not None:
            infos: Sequence[Any] = conversation_of(system, options.conversation).list_threads(
                limit=options.limit
            )
        else:
            archived: Archived = "both" if options.archived else False
            infos = system.list_conversations(limit=options.limit, archived=archived)
    if options.json:
        print_json(infos)
    else:
        from langchain_threadmem.cli import rich_output

        rich_output.write(rich_output.list_infos(infos))


def _show(options: argparse.Namespace) -> None:
    if options.doubtful and options.conversation is None:
        raise InputError("--doubtful requires a conversation; pass its name after the database")
    from langchain_threadmem.cli import rich_output

    with open_memory(options, read_only=True) as system:
        if options.conversation is None:
            # Read one by one, since all messages of all conversations may not fit into memory.
            histories = ((name, system.conversation(name).history) for name in system.conversations())
            if options.json:
                print_json([_counted(name, history) for name, history in histories])
            else:
                rich_output.write(rich_output.list_conversations(histories))
            return
        memory = conversation_of(system, options.conversation)
        doubts = memory.doubtful() if options.doubtful else []
        history = [] if options.doubtful else memory.history
    if options.json:
        print_json(list(map(_doubt, doubts)) if options.doubtful else list(map(_message, history)))
    elif options.doubtful:
        rich_output.write(rich_output.list_doubts(doubts))
    else:
        rich_output.write(rich_output.draw_tree(history, reasons=True), rich_output.list_threads(history))


def _search(options: argparse.Namespace) -> None:
    embeddings = False if options.words else None
    with open_memory(options, read_only=options.read_only, embeddings=embeddings) as system:
        names = system.conversations()
        hits: Sequence[Recollection] = []
        if options.conversation is not None:
            memory = conversation_of(system, options.conversation)
            hits = memory.recall(options.query, options.limit, options.context)
        elif names:
            memory = system.conversation(names[0])
            hits = memory.recall(options.query, options.limit, options.context, scope="owner")
    if options.json:
        print_json(list(map(_hit, hits)))
    else:
        from langchain_threadmem.cli import rich_output

        rich_output.write(rich_output.show_recall(options.query, hits, named=True))


def _stats(options: argparse.Namespace) -> None:
    with open_memory(options, read_only=True) as system:
        statistics = system.stats()
    if options.json:
        print_json(statistics)
    else:
        from langchain_threadmem.cli import rich_output

        rich_output.write(rich_output.show_statistics(statistics))


def _counted(name: str, history: Sequence[ConversationNode]) -> dict[str, Any]:
    from langchain_threadmem.tree import graph

    nodes = graph.living(history)
    return {"conversation": name, "messages": len(nodes), "threads": len(graph.leaves(nodes))}


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
