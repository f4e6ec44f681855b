"""The contents of the page as JSON values: conversations, trees, messages, hits and summaries."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from langchain_core.messages import BaseMessage

from langchain_threadmem.apps.view.snapshots import ConversationSnapshot, Snapshots
from langchain_threadmem.chat_memory import ChatMemory
from langchain_threadmem.errors import NotFoundError
from langchain_threadmem.formats.exporters.layout import Layout
from langchain_threadmem.formats.exporters.page_words import STATES
from langchain_threadmem.index.units.unit import MemoryUnit
from langchain_threadmem.long_term.lists import queries as catalogue_queries
from langchain_threadmem.long_term.lists.verbs import Archived
from langchain_threadmem.memory_system import MemorySystem
from langchain_threadmem.messages.display import body_of, content_of, label_of, preview_of
from langchain_threadmem.messages.rendering import plain
from langchain_threadmem.messages.roles import role_of
from langchain_threadmem.messages.text import cut, one_line, visible
from langchain_threadmem.messages.tool_pairs import calls_tools
from langchain_threadmem.recall.recollections import answers
from langchain_threadmem.recall.results import Recollection
from langchain_threadmem.storage.schema import State
from langchain_threadmem.storage.statements import Conn
from langchain_threadmem.tree import trees
from langchain_threadmem.tree.node import EPOCH, ConversationNode, is_doubtful, nodes_of, probability_of

Json = dict[str, Any]
TEXT = 100_000
"""The maximum length of a text, in characters, unless the page requests the whole text."""
LISTED = 50
"""The number of conversations on a page of the list, and of doubtful places."""
LINE = 160
"""The length of a message or a title on one line, in characters."""
ANSWER = 300
"""The length of the answer that is shown below a question that was found, in characters."""
HITS = 20
"""The maximum number of hits of a search."""
THREADS = 5_000
"""The number of threads of a conversation that are listed."""
ROLES = ("user", "assistant", "other")
_LIVE, _DOUBTFUL, _CALLS, _NEWER, _ASIDE = 1, 2, 4, 8, 16


class Contents:
    """Reads the contents of the page for one owner.

    Args:
        system: A read-only system of the owner.
    """

    def __init__(self, system: MemorySystem) -> None:
        self.system = system
        self.snapshots = Snapshots(system)

    def _memory(self, conversation: str) -> ChatMemory:
        self.snapshots.check(conversation)
        return self.system.conversation(conversation)

    def conversations(self, query: str, archived: Archived, cursor: str | None) -> Json:
        """A page of the list of conversations."""
        page = self.system.list_conversations(
            query=query or None, archived=archived, limit=LISTED, cursor=cursor or None
        )
        items = [
            {
                "id": conversation.id,
                "title": one_line(conversation.title, LINE),
                "preview": plain(conversation.preview),
                "messages": conversation.messages,
                "updated": _time(conversation.updated),
                "archived": conversation.archived is not None,
            }
            for conversation in page
        ]
        return {"items": items, "cursor": page.cursor}

    def version(self, conversation: str) -> Json:
        """Texts that differ after a change of the list of conversations or of the conversation."""
        owner = self.system.owner

        def read(conn: Conn) -> str:
            latest = next(trees.latest_first(conn, owner, most=LISTED), [])
            return sha256(repr(catalogue_queries.rows_of(conn, latest)).encode()).hexdigest()[:16]

        version = self.snapshots.version(conversation) if conversation else None
        listed = self.system.runtime.database.read(read)
        return {"list": listed, "tree": None if version is None else str(version)}

    def tree(self, conversation: str, *, replaced: bool) -> Json:
        """The rows and lanes of a conversation, in columns and without texts, and its threads."""
        snapshot = self.snapshots.get(conversation)
        drawing = snapshot.whole if replaced else snapshot.living
        layout, rows = drawing.layout, drawing.rows
        newer = {node.superseded_by for node in snapshot.history if _is_version(snapshot, node)}
        return {
            "conversation": conversation,
            "version": str(snapshot.version),
            "tip": snapshot.tip,
            "ids": [node.id for node in rows],
            "parents": [node.parent_id or 0 for node in rows],
            "roles": [_role(node.message) for node in rows],
            "flags": [
                _LIVE * (node.state is State.LIVE)
                + _DOUBTFUL * is_doubtful(node)
                + _CALLS * calls_tools(node.message)
                + _NEWER * (node.id in newer)
                + _ASIDE * (node.state is State.ASIDE)
                for node in rows
            ],
            "strands": [layout.strand_of[node.id] for node in rows],
            "lanes": drawing.lanes,
            "colors": [layout.color_of[node.id] for node in rows],
            "topics": layout.names,
            "threads": self._threads(conversation, layout),
            "hidden": len(snapshot.history) - len(rows),
        }

    def _threads(self, conversation: str, layout: Layout) -> list[Json]:
        return [
            {
                "id": thread.id,
                "root": thread.root_id,
                "title": one_line(thread.title, LINE),
                "messages": thread.messages,
                "updated": _time(thread.updated),
                "active": thread.active,
                "strand": layout.strand_of.get(thread.id),
                "color": layout.color_of.get(thread.id, 0),
            }
            for thread in self.system.conversation(conversation).list_threads(limit=THREADS)
        ]

    def lines(self, conversation: str, ids: Iterable[int]) -> Json:
        """Each message on one line; unknown ids are omitted."""
        nodes = self.snapshots.get(conversation).by_id
        return {"lines": [_line(nodes[node_id]) for node_id in ids if node_id in nodes]}

    def node(self, conversation: str, node_id: int, *, whole: bool) -> Json:
        """A message with its place, the reason for the place, its versions and its summary."""
        snapshot = self.snapshots.get(conversation)
        node = snapshot.node(node_id)
        text, placement = content_of(node.message), node.placement
        shown = text if whole else text[:TEXT]
        versions = self.system.conversation(conversation).versions(node_id)
        return {
            **_line(node),
            "parent": node.parent_id,
            "name": one_line(node.message.name or "", LINE),
            "message": node.message.id,
            "text": shown,
            "parts": body_of(node.message, None if whole else TEXT),
            "length": len(text),
            "plain": isinstance(node.message.content, str) and not calls_tools(node.message),
            "by": node.superseded_by,
            "reason": "" if placement is None else visible(placement.reason),
            "probability": probability_of(node),
            "doubtful": is_doubtful(node),
            "chances": [
                {
                    "id": candidate,
                    "chance": chance,
                    "line": "" if candidate is None else _quote(snapshot, candidate),
                }
                for candidate, chance in (() if placement is None else placement.chances)
            ],
            "above": None if node.parent_id is None else _quote(snapshot, node.parent_id),
            "versions": [{**_line(version), "active": version.id == node_id} for version in versions],
            "summary": None
            if node.summary is None
            else {"title": visible(node.summary.title), "text": visible(node.summary.summary)},
        }

    def doubtful(self, conversation: str) -> Json:
        """The messages whose places are doubtful, the most doubtful first."""
        return {
            "items": [
                {
                    **_line(doubt.node),
                    "probability": doubt.probability,
                    "reason": visible(doubt.reason),
                    "other": doubt.runner_up.parent_id,
                    "title": visible(doubt.runner_up.title),
                    "chance": doubt.runner_up.probability,
                }
                for doubt in self._memory(conversation).doubtful(LISTED)
            ]
        }

    def recall(self, conversation: str, query: str, scope: Literal["conversation", "owner"]) -> Json:
        """The hits of a search with their answers and reasons, the best first."""
        hits = self._memory(conversation).recall(query, HITS, 1, scope=scope)
        return {"items": [{**_hit(hit), "below": self._answer(hit)} for hit in hits]}

    def _answer(self, hit: Recollection) -> Json | None:
        """The last live answer to a human message that was found."""
        if hit.rank or hit.node.message.type != "human":
            return None
        runtime = self.system.runtime
        rows = runtime.database.read(lambda conn: answers(conn, runtime.owner, hit))
        found = nodes_of(rows[-1:], runtime.parts.read)
        return {**_line(found[0]), "text": preview_of(found[0].message, ANSWER)} if found else None

    def summary(self, conversation: str) -> Json:
        """The topmost summary of a conversation, and that of the long-term memory."""
        return {
            "items": [
                unit for unit in (self._summary(conversation, 1), self._summary(self.system.owner, 2)) if unit
            ]
        }

    def unfold(self, name: str, group: str, rank: int) -> Json:
        """The summaries or messages that a summary was written from."""
        below = self.system.unfold(_unit_named(name, group, rank), levels=1)
        return {"items": [_unit(unit) for unit in below]}

    def _summary(self, name: str, rank: int) -> Json | None:
        try:
            [unit] = self.system.unfold(_unit_named(name, name, rank), levels=0)
        except NotFoundError:
            return None
        return _unit(unit)


def _unit_named(name: str, group: str, rank: int) -> MemoryUnit:
    return MemoryUnit(name, "", rank=rank, group_id=group)


def _unit(unit: MemoryUnit) -> Json:
    return {
        "id": unit.id,
        "rank": unit.rank,
        "group": unit.group_id,
        "node": unit.node_id,
        "role": visible(unit.source),
        "title": visible(unit.title),
        "text": visible(unit.content[:TEXT]),
        "children": len(unit.children_ids),
        "stale": unit.stale,
        "from": _time(unit.creation_time),
        "to": _time(unit.end_time),
    }


def _hit(hit: Recollection) -> Json:
    return {
        **_line(hit.node),
        "conversation": hit.conversation_id,
        "rank": hit.rank,
        "message": hit.node.message.id,
        "text": cut(content_of(hit.node.message), 600),
        "above": [preview_of(node.message, LINE) for node in hit.thread[:-1]],
        "why": visible(str(hit.why)),
        "terms": [visible(term) for term in hit.why.terms],
    }


def _line(node: ConversationNode) -> Json:
    return {
        "id": node.id,
        "role": label_of(node.message),
        "kind": ROLES[_role(node.message)],
        "state": node.state.label,
        "word": STATES[node.state],
        "time": _time(node.time),
        "line": preview_of(node.message, LINE),
    }


def _quote(snapshot: ConversationSnapshot, node_id: int) -> str:
    node = snapshot.by_id.get(node_id)
    return "" if node is None else f"{label_of(node.message)}: {preview_of(node.message, LINE)}"


def _is_version(snapshot: ConversationSnapshot, node: ConversationNode) -> bool:
    """Whether a node is an older version of a message, and not the former place of a moved message."""
    newer = None if node.superseded_by is None else snapshot.by_id.get(node.superseded_by)
    return newer is not None and newer.parent_id == node.parent_id


def _role(message: BaseMessage) -> int:
    role = role_of(message)
    return ROLES.index(role) if role in ROLES else 2


def _time(time: datetime) -> str | None:
    return None if time == EPOCH else time.isoformat()
