#!/usr/bin/env bash
# ag-ui-langgraph 0.0.47 with ag-ui-protocol 1.0.0 on langgraph 1.2.24 and langchain-core 1.8.3 (AG-UI, CopilotKit)
#
# A client of AG-UI sends its whole list of messages with each run. To regenerate an answer it sends the list up to the
# question; the adapter has a time travel to the checkpoint before the question for this. One would guess that the
# model is asked the question again, as it is if the client sends the question under its id with other words.
#
# What happens: all ids of the shorter list are in the checkpoint, which the adapter takes for a continuation. The run
# goes on from the latest checkpoint, so the model is asked to answer its own answer, and the client, whose list was
# without the answer, gets back both.
#
# Why it matters for chat memory: the history has two answers in a row, and neither is marked as a version of the
# other. Whoever lets people regenerate answers through this adapter has to replace the answer before the run.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "ag-ui-langgraph==0.0.47" "ag-ui-protocol==1.0.0" \
    "langgraph==1.2.24" "langchain-core==1.8.3" "langchain==1.5.2" "fastapi==0.165.0"
cat > program.py <<'PY'
import asyncio
import logging

from ag_ui.core import EventType, RunAgentInput, UserMessage
from ag_ui_langgraph import LangGraphAgent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

logging.disable(logging.CRITICAL)
prompts = []


def answer(state: MessagesState):
    prompts.append([message.content for message in state["messages"]])
    return {"messages": [("ai", f"answer {len(prompts)}")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
agent = LangGraphAgent(name="chat", graph=graph.compile(checkpointer=InMemorySaver()))


async def run(*messages):
    """The list of the client after a run."""
    given = {"state": {}, "tools": [], "context": [], "forwarded_props": {}}
    request = RunAgentInput(thread_id="t", run_id=str(len(prompts)), messages=list(messages), **given)
    events = [event async for event in agent.run(request)]
    assert not [event for event in events if event.type == EventType.RUN_ERROR], events
    return [event.messages for event in events if event.type == EventType.MESSAGES_SNAPSHOT][-1]


async def main():
    question = UserMessage(id="q1", role="user", content="Why?")
    await run(question)
    again = await run(question)
    print("regenerated:", prompts[-1], [message.content for message in again])
    assert prompts[-1] == ["Why?", "answer 1"], prompts
    assert [message.content for message in again] == ["Why?", "answer 1", "answer 2"], again
    other = await run(UserMessage(id="q1", role="user", content="Why not?"))
    print("edited:     ", prompts[-1], [message.content for message in other])
    assert prompts[-1] == ["Why not?"], prompts


asyncio.run(main())
PY
venv/bin/python program.py
