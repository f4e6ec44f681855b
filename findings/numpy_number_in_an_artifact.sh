#!/usr/bin/env bash
# langgraph 1.2.22 (langgraph-checkpoint 4.3.2, langchain 1.4.7, langchain-core 1.7.2) with numpy 2.4.6: numbers in the
# artifact of a tool.
#
# One would guess: since LangGraph's serializer stores arrays of numpy, it stores a number of numpy, such as the score
#   of a hit; or a checkpointer refuses it like a wrong argument, and the conversation goes on without it.
# What happens: an array is stored; one number of it raises "Type is not msgpack serializable: ToolMessage" in the
#   checkpointer, after the tool has run. The call of the model is stored and its result is not: the next turn shows the
#   model a call without a result.
# Why it matters for chat memory: a search tool that returns scores of numpy works without a checkpointer, and with one
#   leaves a thread that providers refuse until the call is removed. The error names neither the tool nor the number.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langchain==1.4.7 langgraph==1.2.22 langgraph-checkpoint==4.3.2 langchain-core==1.7.2 numpy==2.4.6
cat > "$folder/program.py" <<'PYTHON'
import numpy as np
from langchain.agents import create_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

prompts = []


class Model(FakeMessagesListChatModel):
    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, *values, **options):
        prompts.append([message.type for message in messages])
        return super()._generate(messages, *values, **options)


def ask(artifact, *questions, **options):
    @tool(response_format="content_and_artifact")
    def search():
        """Search."""
        return "A page.", artifact

    call = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "c1"}])
    model = Model(responses=[call, AIMessage("Done."), AIMessage("Done.")])
    agent = create_agent(model, [search], **options)
    prompts.clear()
    for question in questions:
        try:
            agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "1"}})
            print("   answered")
        except TypeError as error:
            print("  ", error)
    return prompts[-1]


scores = np.array([0.5, 0.25], dtype=np.float32)
print("no checkpointer:")
assert ask({"score": scores[0]}, "Search!") == ["human", "ai", "tool"]
print("an array:")
assert ask({"scores": scores}, "Search!", checkpointer=InMemorySaver()) == ["human", "ai", "tool"]
print("a number:")
shown = ask({"score": scores[0]}, "Search!", "And now?", checkpointer=InMemorySaver())
print("shown in the next turn:", shown)
assert shown == ["human", "ai", "human"], "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
