#!/usr/bin/env bash
# langgraph 1.2.22: a subgraph with a memory of its own (`compile(checkpointer=True)`) on `MessagesState`.
#
# One would guess: a message that is removed from the state of a graph (`RemoveMessage`) is gone for the graph and for
#   its subgraph, which receives the graph's messages as its input.
# What happens: the subgraph adds its input to a list of its own, which is kept from run to run, and returns this
#   list. The removed messages are in it: the next run shows them to the subgraph's model, and the graph has them
#   again, after the new question and before its answer.
# Why it matters for chat memory: "forget what I said" holds until the next message. A removal has to be applied to
#   each subgraph too, or the subgraph may return new messages alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langgraph==1.2.22 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph


def answer(state):
    prompts.append([message.text for message in state["messages"]])
    return {"messages": [AIMessage("Noted.")]}


prompts = []
agent = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=True)
builder = StateGraph(MessagesState).add_node("agent", agent).add_edge(START, "agent")
graph = builder.compile(checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
first = graph.invoke({"messages": [HumanMessage("I am ill.")]}, config)["messages"]
graph.update_state(config, {"messages": [RemoveMessage(message.id) for message in first]})
left = graph.get_state(config).values["messages"]
state = graph.invoke({"messages": [HumanMessage("Hello")]}, config)["messages"]
print("after the removal: ", left)
print("the model is shown:", prompts[-1])
print("the graph has:     ", [message.text for message in state])
assert left == [], "the messages were not removed"
assert prompts[-1] == ["I am ill.", "Noted.", "Hello"], "the behaviour has changed"
assert [message.text for message in state] == ["Hello", "I am ill.", "Noted.", "Noted."], "it has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
