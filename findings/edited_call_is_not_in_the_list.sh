#!/usr/bin/env bash
# langchain 1.4.7 (langgraph 1.2.22, langchain-core 1.7.2): `HumanInTheLoopMiddleware`, the decision "edit".
#
# One would guess: after a person has edited the call of a tool, the conversation has the call that was executed, since
#   the result below it belongs to that call.
# What happens: the answer of the model keeps its own call, with the arguments that the person has replaced. The call
#   that was executed is text alone: a note of about 60 words in the result of the tool, before what the tool returned,
#   which tells the model not to repeat its call.
# Why it matters for chat memory: what reads calls from messages (a page, an export, training data, an audit of what
#   was paid) shows a call that never ran, and the result of a tool is no longer what the tool has returned.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langchain==1.4.7 langgraph==1.2.22 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

paid = []


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools, **options):
        return self


@tool
def pay(to: str) -> str:
    """Pay."""
    paid.append(to)
    return f"{to} has the money"


call = AIMessage("", tool_calls=[{"name": "pay", "args": {"to": "Bob"}, "id": "c1"}])
agent = create_agent(
    Model(responses=[call, AIMessage("Done.")]),
    [pay],
    middleware=[HumanInTheLoopMiddleware(interrupt_on={"pay": True})],
    checkpointer=InMemorySaver(),
)
config = {"configurable": {"thread_id": "1"}}
agent.invoke({"messages": [("user", "Pay him!")]}, config)
edited = {"type": "edit", "edited_action": {"name": "pay", "args": {"to": "Carol"}}}
messages = agent.invoke(Command(resume={"decisions": [edited]}), config)["messages"]
print("paid:              ", paid)
print("call in the list:  ", messages[1].tool_calls[0]["args"])
print("result in the list:", repr(messages[2].text))
assert paid == ["Carol"]
assert messages[1].tool_calls[0]["args"] == {"to": "Bob"}, "the behaviour has changed"
assert messages[2].text.endswith("Carol has the money") and len(messages[2].text) > 200, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
