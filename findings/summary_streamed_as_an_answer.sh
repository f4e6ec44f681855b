#!/usr/bin/env bash
# langchain 1.4.7 (langgraph 1.2.22, langchain-core 1.7.2): `SummarizationMiddleware` and `stream_mode="messages"`.
#
# One would guess: a stream of messages has the tokens of the answer, and the messages of tools; what a middleware does
#   to the stored list is inside.
# What happens: in the turn in which the list is summarised, the stream begins with the summary, as a message of the
#   assistant from another model call, then a `RemoveMessage` and the stored summary as a message of the *user*. The
#   answer comes after them. Only the metadata tell them apart (`langgraph_node`, and `lc_source` of the first alone).
# Why it matters for chat memory: a page, or a program that stores what it has streamed, shows and keeps a message of
#   the user that nobody has written, once in a long conversation, so that tests of short ones do not show it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langchain==1.4.7 langgraph==1.2.22 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

model = FakeMessagesListChatModel(responses=[AIMessage(f"Answer {n}.") for n in (1, 2, 3)])
summariser = FakeMessagesListChatModel(responses=[AIMessage("The user greets.")])
short = SummarizationMiddleware(model=summariser, trigger=("messages", 4), keep=("messages", 1))
agent = create_agent(model, middleware=[short], checkpointer=InMemorySaver())
config = {"configurable": {"thread_id": "1"}}
streamed = []
for turn in (1, 2, 3):
    given = {"messages": [("user", f"Hello {turn}")]}
    chunks = list(agent.stream(given, config, stream_mode="messages"))
    streamed.append([(message.type, message.text, about.get("lc_source")) for message, about in chunks])
    print(f"turn {turn}:")
    for kind, text, source in streamed[-1]:
        print("   ", kind, repr(text), source or "")
assert [[kind for kind, *_ in turn] for turn in streamed[:2]] == [["ai"], ["ai"]], "the behaviour has changed"
assert [(kind, source) for kind, _, source in streamed[2]] == [
    ("ai", "summarization"),
    ("remove", None),
    ("human", None),
    ("ai", None),
], "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
