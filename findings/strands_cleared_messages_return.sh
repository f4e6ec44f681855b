#!/usr/bin/env bash
# strands-agents 1.62.0, FileSessionManager
#
# An agent with a session manager has its conversation in `agent.messages`, a plain list that programs read and edit.
# One would guess that the session has what the list has after a run: a message that was cleared or redacted in the
# list is gone, or redacted, when the agent is opened again.
#
# What happens: a session manager stores each message once, when it is added. The run after `agent.messages.clear()`
# shows its model the new question alone, and the run after a redaction shows the redacted text. When the agent is
# opened again, all cleared messages are back before the newer ones, and the redacted one has its old text.
#
# Why it matters for chat memory: "start anew" and "forget what I said" work until the next restart of the server, after
# which the model reads the old text again. Only the session's own files can be edited.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "strands-agents==1.62.0"
cat > clear.py <<'PY'
import sys

from strands import Agent
from strands.models import Model
from strands.session.file_session_manager import FileSessionManager

shown = []


class Numbered(Model):
    """Answers with the number of its call, and keeps the texts that it is shown."""

    def update_config(self, **options): ...

    def get_config(self):
        return {}

    async def structured_output(self, *given, **options):
        yield {}

    async def stream(self, messages, *given, **options):
        shown.append(texts(messages))
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": f"answer {len(shown)}"}}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn"}}


def texts(messages):
    return [block["text"] for message in messages for block in message["content"]]


def opened(session):
    """The agent of a session, as a new process opens it."""
    manager = FileSessionManager(session_id=session, storage_dir="sessions")
    return Agent(model=Numbered(), agent_id="agent", session_manager=manager, callback_handler=None)


agent = opened("cleared")
agent("My pin is 1234")
agent.messages.clear()
agent("Hello again")
cleared = (shown[-1], texts(opened("cleared").messages))

agent = opened("redacted")
agent("My pin is 1234")
agent.messages[0]["content"][0]["text"] = "My pin is ****"
agent("Hello again")
redacted = (shown[-1], texts(opened("redacted").messages))
print("cleared: shown to the model", cleared[0], "- opened again", cleared[1])
print("redacted: shown to the model", redacted[0], "- opened again", redacted[1])
expected = (
    (["Hello again"], ["My pin is 1234", "answer 1", "Hello again", "answer 2"]),
    (["My pin is ****", "answer 3", "Hello again"], ["My pin is 1234", "answer 3", "Hello again", "answer 4"]),
)
sys.exit(0 if (cleared, redacted) == expected else 1)
PY
venv/bin/python -W ignore clear.py
