#!/usr/bin/env bash
# deepagents 0.7.32 (langgraph 1.2.22, langchain 1.4.7): summaries after messages are removed from the state.
#
# One would guess: old messages that a summary covers can be removed from the state (`RemoveMessage`), and the
#   next question is shown to the model after the summary.
# What happens: the summary is kept beside the list, with the number of messages that it covers
#   (`_summarization_event`, `cutoff_index`). This position is not adapted when the list gets shorter, so the
#   first messages after a removal count as covered: the model is shown the summary without the question.
# Why it matters for chat memory: a program that deletes messages at a user's wish, or trims the list, loses the
#   user's next messages, without an error. The event has to be reset together with the list.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    deepagents==0.7.32 langgraph==1.2.22 langchain==1.4.7 langchain-core==1.7.2 langchain-google-genai==4.4.2
cat > "$folder/program.py" <<'PYTHON'
from deepagents import create_deep_agent
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver

shown = []


class Model(FakeMessagesListChatModel):
    """Records the messages that it is shown."""

    def bind_tools(self, tools, **kwargs):
        return self

    def _generate(self, messages, *args, **kwargs):
        shown.append([message.text for message in messages if message.type != "system"])
        return super()._generate(messages, *args, **kwargs)


texts = ("one", "the summary of what was said about tea", "two", "three")
model = Model(responses=[AIMessage(text) for text in texts])
model.profile = {"max_input_tokens": 8_000}
agent = create_deep_agent(model, checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "t"}}
for number in range(2):
    question = HumanMessage(f"tea {number} " + "leaf " * 2000, id=f"h{number}")
    agent.invoke({"messages": [question]}, config)
messages = agent.get_state(config).values["messages"]
agent.update_state(config, {"messages": [RemoveMessage(message.id) for message in messages[:-1]]})
left = agent.get_state(config).values["messages"]
agent.invoke({"messages": [HumanMessage("What is the capital of Peru?")]}, config)
print("left in the state:  ", [message.text for message in left])
print("shown to the model: ", [text[:72] for text in shown[-1]])
assert not any("Peru" in text for text in shown[-1]), "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
