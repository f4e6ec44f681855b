"""The tables of a partitioned database: those of `schema`, with the tree in every row and unique key.

PostgreSQL requires the column by which a table is partitioned in each unique key of the table. The tables
that grow with messages are partitioned by the hash of their tree. The others have a row for a conversation
or a fork (`tree`, `profile`, `segment`, `watermark`), for a moved message (`graft`), or rows of owners and of
LangGraph's store, which belong to no tree. `segment` gives the tree of each key.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import BigInteger, Column, Index, MetaData, PrimaryKeyConstraint, Table
from sqlalchemy.dialects.postgresql import TSVECTOR

from langchain_threadmem.storage import schema

TREE = "tree"
_lexicon = Table(
    schema.LEXICON,
    MetaData(),
    Column("key", BigInteger, primary_key=True, autoincrement=False),
    Column("words", TSVECTOR, nullable=False),
)
Index(f"{schema.LEXICON}_words", _lexicon.c.words, postgresql_using="gin")
_OF_NODES = (
    *(schema.node, schema.message_summary, schema.placement, schema.unit, schema.embedding),
    *(schema.document, schema.summary, _lexicon),
)
_OF_TREES = (schema.lineage, schema.checkpoint, schema.blob, schema.write)
KEYED_BY_NODE = frozenset(table.name for table in _OF_NODES)
"""The partitioned tables whose rows have the key of a node."""
WITHOUT_TREE = frozenset(table.name for table in _OF_NODES if TREE not in table.c)
"""The tables whose rows have a tree in a partitioned database only."""


@cache
def partitioned_tables() -> tuple[Table, ...]:
    """The partitioned tables."""
    stored = MetaData()
    for table in (*schema.metadata.sorted_tables, _lexicon):
        table.to_metadata(stored)
    for name in WITHOUT_TREE:
        stored.tables[name].append_column(Column(TREE, BigInteger, nullable=False))
    tables = tuple(stored.tables[table.name] for table in (*_OF_NODES, *_OF_TREES))
    for table in tables:
        if TREE not in table.primary_key.columns:
            # The tree is first, so that the nodes of a range of keys of a tree are a range of the index.
            table.c[TREE].primary_key = True
            table.append_constraint(PrimaryKeyConstraint(TREE, *table.primary_key.columns.keys()))
        table.dialect_options["postgresql"]["partition_by"] = f"HASH ({TREE})"
    return tables
