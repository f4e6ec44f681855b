#!/usr/bin/env bash
# pydantic-ai-slim 1.107.10, output validators that ask for another answer.
#
# Guess: the history of a run is the question and the answer that the run returned.
#
# What happens: the rejected answer, and a request with the reason, stay between them, in all_messages() and in
# new_messages(). With the history of the run, the next run sends both to the model again. The rejected answer is an
# ordinary response (state "complete"); only the part after it says what it is, with the kind "retry-prompt". Its role
# in a prompt is that of the user.
#
# Why it matters for chat memory: an importer that takes requests for human messages and responses for answers stores
# a question that nobody asked, and an answer that the person never saw, which recall then finds.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "pydantic-ai-slim==1.107.10"
"$folder/venv/bin/python" - <<'PROGRAM'
import sys

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

prompts = []


def model(messages, info):
    prompts.append([(part.part_kind, part.content) for message in messages for part in message.parts])
    return ModelResponse(parts=[TextPart("42 pounds" if len(prompts) == 1 else f"19 kilos ({len(prompts)})")])


agent = Agent(FunctionModel(model))


@agent.output_validator
def metric(output: str) -> str:
    if "pounds" in output:
        raise ModelRetry("Use metric units.")
    return output


first = agent.run_sync("How heavy is the parcel?")
agent.run_sync("Which stamp does it need?", message_history=first.new_messages())
states = [message.state for message in first.new_messages() if message.kind == "response"]
print("returned:", first.output)
print("states of the responses:", states)
print("prompt of the next run:", prompts[-1])
expected = [
    ("user-prompt", "How heavy is the parcel?"),
    ("text", "42 pounds"),
    ("retry-prompt", "Use metric units."),
    ("text", "19 kilos (2)"),
    ("user-prompt", "Which stamp does it need?"),
]
sys.exit(0 if prompts[-1] == expected and states == ["complete", "complete"] else 1)
PROGRAM
