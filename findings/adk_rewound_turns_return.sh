#!/usr/bin/env bash
# google-adk 2.13.0, Runner.rewind_async and GetSessionConfig.
#
# Guess: turns that were rewound are gone, and a session that is read with a limit of events shows a model the newest
# part of what it would be shown without the limit.
#
# What happens: a rewind deletes nothing. It appends an event without content that names the invocation to go back to,
# and the prompt is made by leaving out what stands between. If the limit cuts off the first event of that invocation,
# the rewind has no effect, and the rest of the rewound turns is in the prompt again.
#
# Why it matters for chat memory: an importer that takes the events of a session for the conversation brings withdrawn
# turns back, and one that reads the newest events cannot know which of them are withdrawn. A rewind is a branch: it
# must be resolved on the whole list, before any window.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "google-adk==2.13.0"
"$folder/venv/bin/python" - <<'PROGRAM'
import asyncio
import logging
import sys

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

logging.disable(logging.CRITICAL)
prompts = []


class Scripted(BaseLlm):
    async def generate_content_async(self, llm_request, stream=False):
        prompts.append([part.text for content in llm_request.contents for part in content.parts])
        answer = types.Part(text=f"answer {len(prompts)}")
        yield LlmResponse(content=types.Content(role="model", parts=[answer]))


async def main():
    service = InMemorySessionService()
    agent = LlmAgent(name="helper", model=Scripted(model="scripted"), instruction="Be brief")
    runner = Runner(app_name="app", agent=agent, session_service=service)
    here = {"user_id": "ada", "session_id": "tea"}
    await service.create_session(app_name="app", **here)

    async def ask(text, config=None):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for event in runner.run_async(**here, new_message=message, run_config=config):
            invocation = event.invocation_id
        return invocation

    await ask("one")
    second = await ask("two")
    await ask("three")
    await runner.rewind_async(**here, rewind_before_invocation_id=second)
    await ask("four")
    await ask("five", RunConfig(get_session_config=GetSessionConfig(num_recent_events=5)))
    session = await service.get_session(app_name="app", **here)
    stored = [part.text for event in session.events if event.content for part in event.content.parts]
    print("stored after the rewind:", stored)
    print("prompt of 'four', whole session:", prompts[3])
    print("prompt of 'five', newest 5 events:", prompts[4])
    return (
        {"two", "three"} <= set(stored)
        and prompts[3] == ["one", "answer 1", "four"]
        and prompts[4] == ["three", "answer 3", "four", "answer 4", "five"]
    )


sys.exit(0 if asyncio.run(main()) else 1)
PROGRAM
