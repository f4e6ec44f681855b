#!/usr/bin/env bash
# copilotkit 0.1.96 on langchain 1.5.2, langchain-core 1.8.3 and langgraph 1.2.24
#
# A model calls a tool of the server and a tool of the page at once. The agent runs the first, and answers; then the page
# sends the result of the second. One would guess that `CopilotKitMiddleware`, which prepares the messages of each
# request for providers, changes the request alone, as `wrap_model_call` of other middleware does.
#
# What happens: it changes the messages themselves, which are those of the state. The call of the page's tool, whose
# result comes after the answer and not directly after the call, is taken out of the stored answer. The checkpoint
# before the request has the call, the one after it has not, though no node has written the message. The result of
# the call stays in the history without its call, for any model and not only for Bedrock's, which it is done for.
#
# Why it matters for chat memory: a history that was stored earlier changes without a write. A memory must keep what it
# stored, and must not give such middleware its own objects.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "copilotkit==0.1.96" "langchain==1.5.2" \
    "langchain-core==1.8.3" "langgraph==1.2.24" "ag-ui-langgraph==0.0.47" "fastapi==0.165.0"
cat > program.py <<'PY'
from copilotkit import CopilotKitMiddleware
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver


class Model(GenericFakeChatModel):
    def bind_tools(self, tools, **options):
        return self


def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


calls = [{"name": name, "args": {"city": "Rome"}, "id": f"call_{name}"} for name in ("weather", "show_map")]
model = Model(messages=iter([AIMessage("", tool_calls=calls), AIMessage("It is sunny."), AIMessage("You see it.")]))
agent = create_agent(model, [weather], middleware=[CopilotKitMiddleware()], checkpointer=InMemorySaver())
action = {"name": "show_map", "description": "Show a map.", "parameters": {"type": "object", "properties": {}}}
page = {"copilotkit": {"actions": [{"type": "function", "function": action}], "context": []}}
config = {"configurable": {"thread_id": "t"}}


def stored() -> tuple[list[str], list[str]]:
    """The ids of the calls and of the results in the stored history."""
    messages = agent.get_state(config).values["messages"]
    made = [call["id"] for message in messages if message.type == "ai" for call in message.tool_calls]
    return made, [message.tool_call_id for message in messages if message.type == "tool"]


agent.invoke({"messages": [("user", "What is the weather in Rome?")], **page}, config)
before = stored()
agent.invoke({"messages": [ToolMessage("shown", tool_call_id="call_show_map")], **page}, config)
after = stored()
print("calls, results of the first run: ", *before)
print("calls, results of the second run:", *after)
assert before == (["call_weather", "call_show_map"], ["call_weather"]), before
assert after == (["call_weather"], ["call_weather", "call_show_map"]), after
PY
venv/bin/python program.py
