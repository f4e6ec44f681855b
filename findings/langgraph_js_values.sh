#!/usr/bin/env bash
# @langchain/langgraph 1.7.3, @langchain/langgraph-checkpoint-sqlite 1.0.4; langgraph 1.2.24,
# langgraph-checkpoint-sqlite 3.1.2.
#
# Guess: messages of a checkpoint of LangGraph.js come back in Python as what they were, since they do so without
# calls; an argument of a tool call that is undefined in JavaScript is missing, as in JSON.
#
# What happens: the call comes back with a value for the argument that was not given: {"lc": 2, "type": "undefined"}. A
# pending interrupt comes back as a dict: the state of the thread names the next node and no interrupt, and
# Command(resume=...) raises AttributeError: 'dict' object has no attribute 'id'. A channel that was never written has
# its initial value in each checkpoint, without a version.
#
# Why it matters for chat memory: what a program leaves undefined in a call, an artifact or metadata is a value after the
# move. Taking over threads of JavaScript needs a reader of its values, messages included.
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
import { Annotation, START, StateGraph, interrupt, messagesStateReducer } from "@langchain/langgraph";
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";

const State = Annotation.Root({
  messages: Annotation({ reducer: messagesStateReducer, default: () => [] }),
  visits: Annotation({ reducer: (left, right) => left + right, default: () => 7 }),
});
const args = { city: "Rome", day: undefined };
const call = { name: "weather", args, id: "c1", type: "tool_call" };
const graph = new StateGraph(State)
  .addNode("model", async () => ({ messages: [new AIMessage({ content: "", id: "a1", tool_calls: [call] })] }))
  .addNode("ask", async () => ({ messages: [new HumanMessage(interrupt("sure?"))] }))
  .addEdge(START, "model")
  .addEdge("model", "ask")
  .compile({ checkpointer: SqliteSaver.fromConnString("chat.sqlite") });
const config = { configurable: { thread_id: "t" } };
const input = { messages: [new HumanMessage({ content: "hello", id: "h1" })] };
console.log("JavaScript, interrupts:", JSON.stringify((await graph.invoke(input, config)).__interrupt__[0].value));
PROGRAM
node thread.mjs
venv/bin/python - <<'PROGRAM'
import sys

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

config = {"configurable": {"thread_id": "t"}}
builder = StateGraph(MessagesState).add_node("model", lambda state: {})
builder.add_node("ask", lambda state: {"messages": [("user", interrupt("sure?"))]})
builder.add_edge(START, "model").add_edge("model", "ask")
with SqliteSaver.from_conn_string("chat.sqlite") as saver:
    saved = saver.get_tuple(config)
    values = saved.checkpoint["channel_values"]
    arguments = values["messages"][-1].tool_calls[0]["args"]
    print("Python, arguments of the call:", arguments)
    print("Python, visits:", values["visits"], "with a version:", "visits" in saved.checkpoint["channel_versions"])
    graph = builder.compile(checkpointer=saver)
    state = graph.get_state(config)
    print("Python, next:", state.next, "interrupts:", state.interrupts)
    try:
        error = graph.invoke(Command(resume="yes"), config)
    except AttributeError as raised:
        error = str(raised)
    print("Python, resumed:", error)
expected = {"city": "Rome", "day": {"lc": 2, "type": "undefined"}}
is_as_said = arguments == expected and values["visits"] == 7 and "visits" not in saved.checkpoint["channel_versions"]
is_as_said = is_as_said and (state.next, state.interrupts) == (("ask",), ())
sys.exit(not is_as_said or error != "'dict' object has no attribute 'id'")
PROGRAM
