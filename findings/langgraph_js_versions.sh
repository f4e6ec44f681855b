#!/usr/bin/env bash
# @langchain/langgraph 1.7.3, @langchain/langgraph-checkpoint-sqlite 1.0.4; langgraph 1.2.24,
# langgraph-checkpoint-sqlite 3.1.2.
#
# Guess: the savers of LangGraph.js and of LangGraph for Python have the same tables and both write format 4, so a
# thread that a service in JavaScript began goes on in Python; if it cannot, reading it fails.
#
# What happens: Python reads the state and the history of the thread. Each new turn raises TypeError: '>' not supported
# between instances of 'str' and 'int', and nothing of it is stored: versions of channels are whole numbers in
# JavaScript, and the next version of SqliteSaver is text, which LangGraph compares with them.
#
# Why it matters for chat memory: a check that a thread can be read says nothing about whether it can be continued.
# A saver that takes over threads must go on with the kind of versions that a thread has.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-audit --no-fund --prefix "$folder" "@langchain/core@1.4.0" "@langchain/langgraph@1.7.3" \
    "@langchain/langgraph-checkpoint-sqlite@1.0.4" >/dev/null
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langgraph==1.2.24" "langgraph-checkpoint-sqlite==3.1.2"
cat >thread.mjs <<'PROGRAM'
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

const graph = new StateGraph(MessagesAnnotation)
  .addNode("model", async () => ({ messages: [new AIMessage({ content: "from JavaScript", id: "a1" })] }))
  .addEdge(START, "model")
  .compile({ checkpointer: SqliteSaver.fromConnString("chat.sqlite") });
const input = { messages: [new HumanMessage({ content: "hello", id: "h1" })] };
await graph.invoke(input, { configurable: { thread_id: "t" } });
PROGRAM
node thread.mjs
venv/bin/python - <<'PROGRAM'
import sys

from langchain_core.messages import AIMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

config = {"configurable": {"thread_id": "t"}}
builder = StateGraph(MessagesState).add_node("model", lambda state: {"messages": [AIMessage("from Python")]})
seen = []
with SqliteSaver.from_conn_string("chat.sqlite") as saver:
    graph = builder.add_edge(START, "model").compile(checkpointer=saver)

    def look():
        state = graph.get_state(config)
        seen.append(([message.text for message in state.values["messages"]], state.next))
        print("state:", *seen[-1], "checkpoints:", len(list(graph.get_state_history(config))))

    look()
    for text in ("one", "two"):
        try:
            graph.invoke({"messages": [("user", text)]}, config)
        except TypeError as error:
            seen.append(str(error))
            print("turn:", error)
        look()
error = "'>' not supported between instances of 'str' and 'int'"
sys.exit(seen[0] != (["hello", "from JavaScript"], ()) or [seen[1], seen[3]] != [error, error])
PROGRAM
