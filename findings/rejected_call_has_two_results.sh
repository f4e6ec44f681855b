#!/usr/bin/env bash
# langchain 1.5.2 with langchain-anthropic 1.7.10 on langchain-core 1.8.3 and langgraph 1.2.24
#
# An agent has a limit of tool calls and a person who reviews them. One would guess that the person is not asked about
# a call that the limit has blocked, or at least that each call has one result: providers refuse a second one.
#
# What happens: with `middleware=[HumanInTheLoopMiddleware(...), ToolCallLimitMiddleware(...)]` the limit runs first and
# writes an error as the result of the blocked call; then the person is asked about this call, too. If the person
# rejects it, the rejection is a second result of the same call, and both are in the request to the provider. If the
# person approves it, it does not run, and the person is not told.
#
# Why it matters for chat memory: a stored call may have two results, and each later request of the conversation would
# contain both. A memory has to show one of them: the later, which says what the person decided.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "langchain==1.5.2" "langchain-anthropic==1.7.10" \
    "langchain-core==1.8.3" "langgraph==1.2.24"
cat > program.py <<'PY'
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolCallLimitMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

ran, sent = [], []


class Model(ChatAnthropic):
    """Calls the tool twice; records what it would send."""

    def _generate(self, messages, *args, **kwargs):
        sent.append(self._get_request_payload(messages)["messages"])
        calls = [{"name": "book", "args": {"city": city}, "id": f"call_{city}"} for city in ("Rome", "Oslo")]
        answer = AIMessage("Done.") if len(sent) % 2 == 0 else AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=answer)])


def book(city: str) -> str:
    """Book a room."""
    ran.append(city)
    return f"booked in {city}"


def results(decision: str) -> tuple[list[str], list[str]]:
    """The calls about which the person is asked, and the results in the request after the decision."""
    agent = create_agent(
        Model(model="claude-sonnet-4-5", api_key="none"),
        [book],
        middleware=[HumanInTheLoopMiddleware({"book": True}), ToolCallLimitMiddleware(run_limit=1)],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": decision}}
    asked = agent.invoke({"messages": [("user", "Book rooms in Rome and Oslo")]}, config)["__interrupt__"]
    actions = [action["args"]["city"] for action in asked[0].value["action_requests"]]
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}, {"type": decision}]}), config)
    blocks = [block for block in sent[-1][-1]["content"] if block["type"] == "tool_result"]
    return actions, [(block["tool_use_id"], block["content"][:24]) for block in blocks]


limit = ("call_Oslo", "Tool call limit exceeded")
asked, rejected = results("reject")
print("asked:", asked, "\nrejected:", *rejected, sep="\n  ")
assert asked == ["Rome", "Oslo"], asked
assert [call for call, _ in rejected].count("call_Oslo") == 2 and limit in rejected, rejected
ran.clear()
asked, approved = results("approve")
print("approved:", *approved, "ran:", ran, sep="\n  ")
assert limit in approved and ran == ["Rome"], (approved, ran)
PY
venv/bin/python program.py
