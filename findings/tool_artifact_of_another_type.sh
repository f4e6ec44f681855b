#!/usr/bin/env bash
# langgraph 1.2.22 (langgraph-checkpoint 4.3.2, langgraph-checkpoint-sqlite 3.1.2, langchain-core 1.7.2): artifacts of
# tools, and LangGraph's serializer, which is that of all its checkpointers.
#
# One would guess: the artifact of a tool's message comes back from a checkpoint as the object it was, since LangGraph
#   restores dataclasses and Pydantic models, which are values of the state, with their classes.
# What happens: in the message both come back as dictionaries, without a warning, while the same object in a key of the
#   state has its class. The run that has called the tool still sees the object, so the difference shows after a
#   restart, an interrupt or in the next turn.
# Why it matters for chat memory: a program that shows the sources of an answer (`message.artifact.url`) works in the
#   turn of the answer, and fails for the same stored message later.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph==1.2.22 langgraph-checkpoint==4.3.2 langgraph-checkpoint-sqlite==3.1.2 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel


@dataclass
class Source:
    url: str


class Page(BaseModel):
    title: str


class State(MessagesState):
    found: Any


def look(state):
    artifact = [Source("https://example.org"), Page(title="Figs")]
    return {"messages": [ToolMessage("A page.", tool_call_id="c1", artifact=artifact)], "found": artifact}


for saver in (InMemorySaver(), None):
    with SqliteSaver.from_conn_string(":memory:") as sqlite:
        graph = StateGraph(State).add_node("look", look).add_edge(START, "look").compile(checkpointer=saver or sqlite)
        config = {"configurable": {"thread_id": "1"}}
        now = graph.invoke({"messages": [("user", "Look!")]}, config)["messages"][-1].artifact
        later = graph.get_state(config).values
        print("in the run:            ", now)
        print("later, in the message: ", later["messages"][-1].artifact)
        print("later, in the state:   ", later["found"])
        assert later["found"] == now == [Source("https://example.org"), Page(title="Figs")], "it has changed"
        assert later["messages"][-1].artifact == [{"url": "https://example.org"}, {"title": "Figs"}], "it has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
