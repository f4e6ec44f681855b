#!/usr/bin/env bash
# langgraph 1.2.22 (langgraph-checkpoint 4.3.2): the functional API, `@entrypoint` with `entrypoint.final`.
#
# One would guess: `get_state(config).values` of a function is what the function has saved for its next call, as the
#   values of a graph are what its next run begins with. A chat saves its list of messages, and returns the answer.
# What happens: the values, of the latest state and of each state of the history, are what the function returned: the
#   last answer alone. The saved list is in the checkpoint, and neither `get_state` nor `get_state_history` shows it.
#   An update of the state writes both, so an update with the shown value replaces the conversation by one message.
# Why it matters for chat memory: a page that shows a thread by its state, or a program that reads it, edits it and
#   writes it back, loses the conversation, without an error. The list has to be returned too, or be kept elsewhere.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langgraph==1.2.22 langgraph-checkpoint==4.3.2 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from langgraph.graph import add_messages


@entrypoint(checkpointer=InMemorySaver())
def chat(given, *, previous=None):
    messages = add_messages(previous or [], given)
    answer = AIMessage(f"I have read {len(messages)} messages.")
    return entrypoint.final(value=answer, save=add_messages(messages, answer))


config = {"configurable": {"thread_id": "1"}}
chat.invoke([HumanMessage("Hello")], config)
print("second answer:", chat.invoke([HumanMessage("And now?")], config).text)
shown = [state.values for state in chat.get_state_history(config)]
print("states:", [getattr(value, "text", value) for value in shown])
values = chat.get_state(config).values
chat.update_state(config, values)
answer = chat.invoke([HumanMessage("And after an update with the shown value?")], config).text
print("third answer:", answer)
assert not any(isinstance(value, list) for value in shown), "the behaviour has changed: a state shows the list"
assert answer == "I have read 2 messages.", "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
