#!/usr/bin/env bash
# autogen-agentchat 0.7.5 with autogen-ext 0.7.5: the saved state of a team and of its agents.
#
# Guess: `save_state()` of an agent has the conversation as the agent knows it, with the person's messages as
# UserMessage and the agents' answers as AssistantMessage; each agent of a team has the whole conversation.
#
# What happens: in the state of an agent the answers of all other agents are UserMessages; only `source` tells them
# from the person. The answer that was given last is in no model context but that of its author: the others have it in
# a buffer beside their context, in another format (TextMessage instead of UserMessage).
#
# Why it matters for chat memory: a reader by type stores the words of a model as words of the person, and loses the
# last answer of the conversation.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "autogen-agentchat==0.7.5" "autogen-ext==0.7.5"
"$folder/venv/bin/python" - <<'PROGRAM'
import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.replay import ReplayChatCompletionClient


async def main():
    ann = AssistantAgent("ann", ReplayChatCompletionClient(["Assam, says Ann."]))
    bo = AssistantAgent("bo", ReplayChatCompletionClient(["Darjeeling, says Bo."]))
    team = RoundRobinGroupChat([ann, bo], termination_condition=MaxMessageTermination(3))
    await team.run(task="Which tea?")
    states = (await team.save_state())["agent_states"]
    contexts = {
        name: [(one["type"], one["source"], one["content"]) for one in states[name]["agent_state"]["llm_context"]["messages"]]
        for name in ("ann", "bo")
    }
    buffered = [(one["type"], one["content"]) for one in states["ann"]["message_buffer"]]
    print("context of bo:", contexts["bo"])
    print("context of ann:", contexts["ann"])
    print("buffer of ann:", buffered)
    return (
        ("UserMessage", "ann", "Assam, says Ann.") in contexts["bo"]
        and not any("Darjeeling" in content for *_, content in contexts["ann"])
        and buffered == [("TextMessage", "Darjeeling, says Bo.")]
    )


sys.exit(0 if asyncio.run(main()) else 1)
PROGRAM
