"""The tables of a memory: trees, segments and nodes are the source of truth for all conversations."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    or_,
    text,
)

POSITION_BITS = 24
LAST_POSITION = (1 << POSITION_BITS) - 1

# SQLite makes a column the row's own number only if its type reads exactly INTEGER.
Key = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData()


def _partial_index(name: str, *columns: Column[Any], where: str) -> Index:
    """An index of the rows that meet a condition."""
    return Index(name, *columns, sqlite_where=text(where), postgresql_where=text(where))


migration = Table(
    "threadmem_migration",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("applied", Float, nullable=False),
)

tree = Table(
    "threadmem_tree",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("conversation", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("tip", Key),  # key of the last node of the active thread; null for the newest node
    Column("system", Key),  # key of the newest live system message
    Column("version", Key, nullable=False),  # incremented when a node changes its state
    Column("epoch", Key, nullable=False),  # incremented when the tree is emptied and numbers restart at 1
    Column("created", Float, nullable=False),
    Column("sealed", Boolean, nullable=False),  # whether the content of its messages is encrypted
    Column("used", Float),  # bound of the time of the newest message, see `tree.trees`; null if not listed
    UniqueConstraint("owner", "conversation", "scope", name="threadmem_tree_name"),
    sqlite_autoincrement=True,
)

# An Agent Server may name no user when it deletes a thread, so its owners are looked up.
Index("threadmem_tree_conversation", tree.c.conversation)
_partial_index("threadmem_tree_used", tree.c.owner, tree.c.used, tree.c.id, where="used IS NOT NULL")

# Properties of a conversation that callers set; a conversation without such properties has no row.
profile = Table(
    "threadmem_profile",
    metadata,
    Column("tree", Key, ForeignKey(tree.c.id), primary_key=True, autoincrement=False),
    Column("title", Text),  # null: derived from the first messages of the conversation
    Column("metadata", Text, nullable=False),  # a JSON object
    Column("archived", Float),  # time of archiving, in seconds since 1970; null if it is not archived
)

segment = Table(
    "threadmem_segment",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("tree", Key, ForeignKey(tree.c.id), nullable=False),
    Column("parent", Key),  # key of the node that the segment forks from; null at a root
    sqlite_autoincrement=True,
)
Index("threadmem_segment_parent", segment.c.tree, segment.c.parent)

# The current parent of a moved node, with which its descendants moved.
graft = Table(
    "threadmem_graft",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("tree", Key, ForeignKey(tree.c.id), nullable=False),
    Column("parent", Key, nullable=False),  # key of the current parent
)
Index("threadmem_graft_parent", graft.c.tree, graft.c.parent)

node = Table(
    "threadmem_node",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("tree", Key, nullable=False),
    Column("seq", Key, nullable=False),
    Column("parent", Key),  # seq of the parent; null at a root
    Column("message", Text, nullable=False),  # id of the message
    Column("role", Text, nullable=False),  # LangChain's type: human, ai, system, tool ...
    Column("body", Text, nullable=False),
    Column("created", Float, nullable=False),  # seconds since 1970, UTC
    Column("state", SmallInteger, nullable=False),
    Column("superseded_by", Key),  # seq of the node that replaced it
)
Index("threadmem_node_seq", node.c.tree, node.c.seq, unique=True)
Index("threadmem_node_message", node.c.tree, node.c.message)
# The nodes that are no messages of a conversation's list: all but the live messages of people and models.
# For NOT IN, SQLite would build a table of the roles at each insert, in 4 µs of an append.
node_unsaid = _partial_index(
    "threadmem_node_unsaid",
    node.c.tree,
    where="state > 0 OR (role <> 'human' AND role <> 'ai' AND role <> 'chat')",
)

# The title and the summary of a message.
message_summary = Table(
    "threadmem_message_summary",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("title", Text, nullable=False),
    Column("summary", Text, nullable=False),
)

# Why a human message has its place, and the places that it may have had.
placement = Table(
    "threadmem_placement",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),  # of the human message that was placed
    Column("reason", Text, nullable=False),
    Column("chances", Text, nullable=False),  # JSON: [candidate (seq, or null for a new root), probability]
    Column("title", Text),  # of the thread that the message begins, if a chat model returned a title
)

# Turns that runs of graphs began in a conversation; see `tree.turn_branches`.
lineage = Table(
    "threadmem_lineage",
    metadata,
    Column("tree", Key, ForeignKey(tree.c.id), primary_key=True, autoincrement=False),
    Column("seq", Key, primary_key=True, autoincrement=False),  # first number of the turn's human message
    Column("turn", Key, nullable=False),  # 1, 2, 3 ... in each tree
    Column("thread", Text, nullable=False),  # LangGraph's thread; empty if it has the conversation's name
    Column("hidden", Text, nullable=False),  # JSON: ranges of turns that the run did not see
    UniqueConstraint("tree", "turn", name="threadmem_lineage_turn"),
    sqlite_with_rowid=False,
)

# A text that only the key of an owner with an encrypted memory can decrypt.
key_proof = Table(
    "threadmem_key_proof",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("proof", Text, nullable=False),
)

SUMMARIES = "summaries"
"""The scope of trees of summaries; a LangGraph channel's scope begins with a bracket."""
recallable = or_(tree.c.scope == "", tree.c.scope == SUMMARIES)
"""Whether recall may find the nodes of a tree: of a conversation, or of summaries."""

# The state of a message or a summary in memory; a message with the default state has no row.
unit = Table(
    "threadmem_unit",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("parent", Key),  # key of the summary that covers the unit
    Column("visits", Key, nullable=False, server_default=text("0")),
    Column("last_visit", Key, nullable=False, server_default=text("0")),  # a round; see `visit_round`
    Column("never_delete", SmallInteger, nullable=False, server_default=text("0")),
    Column("forgotten", Float),  # time of forgetting; the node stays in history
)
_partial_index("threadmem_unit_parent", unit.c.parent, where="parent IS NOT NULL")

# A summary of units; its text is the message of its node.
summary = Table(
    "threadmem_summary",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),  # of the node with the text of the summary
    Column("tree", Key, ForeignKey(tree.c.id), nullable=False),
    Column("id", Text, nullable=False),  # a root has the id of its session, or the name of the owner
    Column("rank", SmallInteger, nullable=False),  # 1 in a session, 2 in the long-term memory
    Column("level", SmallInteger, nullable=False),  # 1 above the summarised units, then 2, 3 ...
    Column("thread", Key, nullable=False),  # seq of the first message, if it covers one thread; otherwise 0
    Column("place", Key, nullable=False),  # order among siblings
    Column("messages", Key, nullable=False),  # number of covered messages
    Column("started", Float, nullable=False),  # time of the first covered message: seconds since 1970, UTC
    Column("ended", Float, nullable=False),  # time of the last covered message
    Column("stale", SmallInteger, nullable=False),  # 1: a covered unit was removed or changed
    UniqueConstraint("tree", "id", name="threadmem_summary_id"),
)

# Summaries of an interrupted run, which the next run uses without another model call.
summary_draft = Table(
    "threadmem_summary_draft",
    metadata,
    Column("tree", Key, ForeignKey(tree.c.id), primary_key=True, autoincrement=False),
    Column("hash", Text, primary_key=True),  # of the summarised texts
    Column("summary", Text, nullable=False),  # title and text as a JSON list
    sqlite_with_rowid=False,
)

# The number of queries of an owner, by which visits of units are ordered.
visit_round = Table(
    "threadmem_visit_round",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("round", Key, nullable=False),  # incremented by each query; the unit of `unit.last_visit`
)

# The bias of selectors, learned from an owner's corrections; an owner without corrections has no row.
selector_bias = Table(
    "threadmem_selector_bias",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("new_thread", Float, nullable=False),  # added to the log-odds of a new thread
    Column("going_back", Float, nullable=False),  # added to the log-odds of all turns but the last
    Column("corrections", Key, nullable=False),  # number of corrections
)

embedding = Table(
    "threadmem_embedding",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("model", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False),  # float16, unit length
)

# The document of a message for recall (`index.documents`), by which ranking reads no bodies, and entries of
# the lexicon can be removed.
document = Table(
    "threadmem_document",
    metadata,
    Column("key", Key, primary_key=True, autoincrement=False),
    Column("terms", Text, nullable=False),
    Column("traits", Key, nullable=False),
    Column("speaker", Text, nullable=False),
    Column("time", Float, nullable=False),  # seconds since 1970, UTC
)

# The last node that an index contains, with the size of the index.
watermark = Table(
    "threadmem_watermark",
    metadata,
    Column("tree", Key, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),  # name of the index
    Column("seq", Key, nullable=False),  # last indexed node
    Column("documents", Key, nullable=False),
    Column("words", Key, nullable=False),
)

# LangGraph's checkpoints; their lists of messages are stored as spans of nodes. Ids are packed (a UUID takes
# 16 bytes), and rows are stored in the order of their keys, so no index over the keys is needed.
checkpoint = Table(
    "threadmem_checkpoint",
    metadata,
    Column("tree", Key, ForeignKey(tree.c.id), primary_key=True, autoincrement=False),
    Column("ns", Text, primary_key=True),
    Column("id", LargeBinary, primary_key=True),
    Column("parent", LargeBinary),
    Column("run", Text),
    Column("refs", Text, nullable=False),  # for each channel, in the order of its versions: a blob, or 0
    Column("kind", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)
_partial_index("threadmem_checkpoint_run", checkpoint.c.run, where="run IS NOT NULL")

blob = Table(
    "threadmem_blob",
    metadata,
    Column("tree", Key, ForeignKey(tree.c.id), primary_key=True, autoincrement=False),
    Column("id", Key, primary_key=True, autoincrement=False),  # 1, 2, 3 ... in each tree
    Column("kind", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

write = Table(
    "threadmem_write",
    metadata,
    Column("tree", Key, ForeignKey(tree.c.id), primary_key=True, autoincrement=False),
    Column("ns", Text, primary_key=True),
    Column("checkpoint", LargeBinary, primary_key=True),
    Column("task", LargeBinary, primary_key=True),
    Column("idx", Integer, primary_key=True, autoincrement=False),
    Column("path", Text, nullable=False),
    Column("channel", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

# The items of LangGraph's store, by namespace and key. Names are bytes (`langgraph.items.namespaces`), so
# that both databases sort them equally in every locale; the namespaces below a namespace are a range.
namespace = Table(
    "threadmem_namespace",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("owner", Text, nullable=False),
    Column("path", LargeBinary, nullable=False),
    UniqueConstraint("owner", "path", name="threadmem_namespace_path"),
    sqlite_autoincrement=True,
)

item = Table(
    "threadmem_item",
    metadata,
    Column("id", Key, primary_key=True, autoincrement=True),
    Column("namespace", Key, ForeignKey(namespace.c.id), nullable=False),
    Column("key", LargeBinary, nullable=False),
    Column("created", Float, nullable=False),  # seconds since 1970, UTC
    Column("updated", Float, nullable=False),
    Column("ttl", Float),  # minutes from the last use to the expiry
    Column("expires", Float),
    Column("version", Key, nullable=False),  # 1, 2, 3 ...: invalidates cached values
    Column("value", Text, nullable=False),  # last, since searches read the columns before it
    UniqueConstraint("namespace", "key", name="threadmem_item_key"),
    sqlite_autoincrement=True,
)
_partial_index("threadmem_item_expires", item.c.expires, where="expires IS NOT NULL")

# Each put removes the expired items of its namespace.
item_expiry = _partial_index(
    "threadmem_item_expiry", item.c.namespace, item.c.expires, where="expires IS NOT NULL"
)

item_vector = Table(
    "threadmem_item_vector",
    metadata,
    Column("item", Key, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),  # an item may have several texts
    Column("model", Text, nullable=False),
    Column("vector", LargeBinary, nullable=False),  # float16, unit length
)

# Chat memories that are stored beside the tree: lists of messages, each replaced as a whole.
chat_memory = Table(
    "threadmem_chat_memory",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("id", Text, primary_key=True),
    Column("messages", Text, nullable=False),  # JSON: pairs of message id and body
    Column("updated", Float, nullable=False),  # seconds since 1970, UTC
)

LEXICON = "threadmem_lexicon"
"""The inverted index over words: FTS5 on SQLite, a `tsvector` table on PostgreSQL."""

LEXICON_DDL = {
    # Without contents and positions: a query only returns the nodes that contain a word.
    "sqlite": (
        f"CREATE VIRTUAL TABLE {LEXICON} USING fts5(words, content='', detail=none, "
        "columnsize=0, tokenize=\"ascii tokenchars '_'\")",
    ),
    "postgresql": (
        f"CREATE TABLE {LEXICON} (key BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
        f"CREATE INDEX {LEXICON}_words ON {LEXICON} USING GIN (words)",
    ),
}


class State(IntEnum):
    """The state of a stored node; the numbers are the values in the database."""

    LIVE = 0
    """Part of the conversation."""
    SUPERSEDED = 1
    """Replaced by an edit, a regeneration or a move: part of history, but not of recall."""
    ASIDE = 2
    """A summary or a notice in a list of messages: not part of the conversation."""
    PURGED = 3
    """Erased: only the number remains, so that it is never reused; no reader returns the node."""
    REMOVED = 4
    """Removed from a list or replaced in it, see `tree.lists`: only checkpoints that have it return it."""

    @property
    def label(self) -> str:
        """The name for people and in documents."""
        return self.name.lower()
