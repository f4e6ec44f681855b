"""Recall of messages outside of the thread that a model is shown."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from langchain_threadmem.common.ranges import Range
from langchain_threadmem.engine.flow import Flow, Sql
from langchain_threadmem.langgraph._system import NO_LINEAGE, Lineage
from langchain_threadmem.messages.codec import text_of
from langchain_threadmem.messages.prompt import newest_human
from langchain_threadmem.recall.options import RecallOptions, Scope
from langchain_threadmem.recall.packing import adds_nothing
from langchain_threadmem.recall.quoting import Recalled, recalled
from langchain_threadmem.recall.recollections import answers_to
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.recall.verbs import recall
from langchain_threadmem.recall.versions import alike
from langchain_threadmem.selection import coverage
from langchain_threadmem.selection.run_selector import ThreadedConversation
from langchain_threadmem.selection.tree_view import turns
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import nodes, turn_branches
from langchain_threadmem.tree.conversation import tree_of

_MOST_EXTRA = 50
"""The maximum number of additional hits, which replace hits in the active thread."""


def recall_elsewhere(
    conversation: ThreadedConversation,
    query: str,
    path: Sequence[BaseMessage],
    n_results: int,
    *,
    scope: Scope = "conversation",
    min_similarity: float = 0.3,
    lineage: Lineage = NO_LINEAGE,
) -> Flow[list[Recalled]]:
    """Recall messages of other threads, and summaries that cover more than the active thread, the best first.

    Args:
        conversation: The conversation.
        query: The query of the recall, which is no result itself.
        path: The messages of the active thread. These messages, and those that the option `cover` of the
            conversation quotes, are no results.
        n_results: The maximum number of messages and summaries.
        scope: The other threads of this "conversation", or also all others of its "owner".
        min_similarity: The minimum similarity of a hit; without embeddings a hit shares a word with the
            query.
        lineage: The branch that the run continues; turns of branches that it has not seen are no results.

    Returns:
        Plain values, for `recall.quoting`.
    """
    if n_results < 1:
        return []
    tree = yield from tree_of(conversation)
    unseen, replaced = yield from Sql(lambda conn: _outside(conn, tree, path, lineage))
    index = (yield from turns(conversation.runtime, tree)) if unseen else None
    most = n_results + (_MOST_EXTRA if unseen else min(len(path), _MOST_EXTRA))
    asked = alike(query)
    hits = yield from recall(
        conversation,
        query,
        RecallOptions(most, scope),
        0,
        lambda hit: not hit.rank and alike(text_of(hit.node.message)) == asked,
    )
    view = yield from coverage.covered(conversation, path)
    own_ids, places = coverage.quoted_ids(view), coverage.quoted_places(view)

    def is_known(hit: Recollection) -> bool:
        if [hit.conversation_id, hit.rank, hit.node.id] in places:
            return True
        if hit.rank or hit.conversation_id != conversation.name:
            return False
        if hit.node.message.id in own_ids or hit.node.id in replaced:
            return True
        return bool(index and index.belongs(hit.node.id, unseen))

    def is_new(hit: Recollection) -> bool:
        if is_known(hit):
            return False
        if hit.why.similarity is None:
            return bool(hit.why.terms)
        return hit.why.similarity >= min_similarity

    results: list[Recollection] = []
    for hit in filter(is_new, hits):
        if len(results) == n_results:
            break
        if not hit.rank or not (yield from adds_nothing(conversation, hit, own_ids)):
            results.append(hit)
    answers = yield from answers_to(conversation.runtime, results, is_known)
    return [recalled(hit, answer) for hit, answer in zip(results, answers, strict=True)]


def _outside(
    conn: Conn, tree: int, path: Sequence[BaseMessage], lineage: Lineage
) -> tuple[Sequence[Range], set[int]]:
    """The nodes that a run at the end of a path has not seen, and the answers that the run replaces.

    A question that is asked again, after its answer was deleted or from an older checkpoint, has answers that
    are no memory for the new answer.
    """
    newest = newest_human(path)
    places = [] if newest is None else nodes.places(conn, tree, str(path[newest].id))
    if not places:
        return (), set()
    unseen = turn_branches.unseen(conn, tree, lineage.thread, min(place.seq for place in places))
    answers = {row.seq for place in places for row in nodes.answers(conn, tree, place.key, place.seq)}
    return unseen, answers
