#!/usr/bin/env bash
# langgraph 1.2.22 with langgraph-checkpoint-sqlite 3.1.2: two machines, one thread.
#
# One would guess: the latest state of a thread is that of the run that ended last; a checkpoint names its
#   parent, so the order of runs is known.
# What happens: the id of a checkpoint begins with the clock of the machine, and a saver returns the highest
#   id. A machine whose clock is behind by a few seconds continues the thread, answers, stores its checkpoints
#   without an error, and the next run of any machine begins at the state before them.
# Why it matters for chat memory: the question and its answer, which the person has seen, are gone from the
#   chat, in silence. Servers behind one database need clocks in step, or a store of messages beside the saver.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph==1.2.22 langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2 langchain-core==1.7.2
cat > "$folder/machine.py" <<'PYTHON'
import sys
import time

behind, question, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
real = time.time_ns
time.time_ns = lambda: real() - behind * 1_000_000_000  # the clock of this machine

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState)
builder.add_node("model", lambda state: {"messages": [AIMessage(f"I heard {state['messages'][-1].text}.")]})
builder.add_edge(START, "model")
with SqliteSaver.from_conn_string(path) as saver:
    graph, config = builder.compile(checkpointer=saver), {"configurable": {"thread_id": "talk"}}
    if question:
        answered = graph.invoke({"messages": [("user", question)]}, config)
        print(f"clock {behind} s behind, returned:", [message.text for message in answered["messages"]])
    state = [message.text for message in graph.get_state(config).values["messages"]]
    print("state of the thread:", state)
    if not question:
        assert "two" not in state, "the behaviour has changed"
PYTHON
run() { "$folder/venv/bin/python" -W ignore "$folder/machine.py" "$1" "$2" "$folder/chat.db"; }
run 0 "one"
run 5 "two"
run 0 ""
