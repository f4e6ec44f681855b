#!/usr/bin/env bash
# langgraph-api 0.16.7 with langgraph-runtime-inmem 0.36.7 and langgraph-cli 0.4.40 (LangGraph's Agent Server)
#
# A person sends two messages one after the other; the client starts the second run with multitask_strategy
# "interrupt", which keeps what the first run has done, unlike "rollback". One would guess that the first message is in
# the thread, as it is if the second comes while the model answers.
#
# What happens: if no worker has begun the first run, which takes up to a second on an idle server and longer on a busy
# one, the run is marked as interrupted and its input is dropped. The model is asked the second message alone, and no
# checkpoint of the thread has ever contained the first.
#
# Why it matters for chat memory: whether the first half of a question is part of the conversation depends on the load of
# the server, and a memory that reads checkpoints cannot know that it was sent. Only "enqueue" keeps both.
set -eu
work=$(mktemp -d)
server=
clean() { if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi; rm -rf "$work"; }
trap clean EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langgraph-cli[inmem]==0.4.40" "langgraph-api==0.16.7" \
    "langgraph-runtime-inmem==0.36.7" "langgraph==1.2.24" "langgraph-checkpoint==4.3.2" "langgraph-sdk==0.4.14"

cat > graph.py <<'PY'
import asyncio

from langgraph.graph import START, MessagesState, StateGraph


async def answer(state: MessagesState):
    if "slow" in state["messages"][-1].content:
        await asyncio.sleep(6)
    return {"messages": [("ai", "Fine.")]}


graph = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
PY
echo '{"dependencies": ["."], "graphs": {"chat": "./graph.py:graph"}}' > langgraph.json
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
LANGGRAPH_CLI_NO_ANALYTICS=1 LANGSMITH_TRACING=false \
    venv/bin/langgraph dev --no-browser --no-reload --n-jobs-per-worker 1 --port "$port" > log 2>&1 &
server=$!
cat > use.py <<'PY'
import sys
import time

import httpx
from langgraph_sdk import get_sync_client

url = sys.argv[1]
for _ in range(240):
    try:
        if httpx.get(f"{url}/ok").is_success:
            break
    except httpx.TransportError:
        time.sleep(0.5)
client = get_sync_client(url=url, api_key=None)


def send(thread: str, text: str, **options: str) -> str:
    given = {"messages": [{"role": "user", "content": text}]}
    return client.runs.create(thread, "chat", input=given, **options)["run_id"]


def wait_until_it_runs(thread: str, run: str) -> None:
    while not client.threads.get_history(thread) or client.runs.get(thread, run)["status"] != "running":
        time.sleep(0.2)
    time.sleep(1)


def said(busy: bool, strategy: str) -> list[str]:
    """The thread after two messages, the second of which was sent before or after the first run has begun."""
    if busy:
        other = client.threads.create()["thread_id"]
        wait_until_it_runs(other, send(other, "slow"))
    thread = client.threads.create()["thread_id"]
    first = send(thread, "My slow dog is called Rex")
    if not busy:
        wait_until_it_runs(thread, first)
    client.runs.join(thread, send(thread, "What does he eat?", multitask_strategy=strategy))
    return [message["content"] for message in client.threads.get_state(thread)["values"]["messages"]]


found = {(busy, strategy): said(busy, strategy) for busy in (False, True) for strategy in ("interrupt", "enqueue")}
for (busy, strategy), texts in found.items():
    print(strategy, "before the first run has begun:" if busy else "while the first run answers:", texts)
assert found[False, "interrupt"] == ["My slow dog is called Rex", "What does he eat?", "Fine."], found
assert found[True, "interrupt"] == ["What does he eat?", "Fine."], found
both = ["My slow dog is called Rex", "Fine.", "What does he eat?", "Fine."]
assert found[False, "enqueue"] == found[True, "enqueue"] == both, found
PY
venv/bin/python use.py "http://127.0.0.1:$port"
