#!/usr/bin/env bash
# langchain-openai 1.7.3 (langchain-core 1.7.2): spoken messages, with Chat Completions and with the Responses API.
#
# One would guess: a client that cannot send a part of a message says so, as this one does for a video; or that a
#   conversation with a spoken message is sent alike with `use_responses_api=True` and without it.
# What happens: Chat Completions is sent the audio. With the Responses API the block is left out without a word, and a
#   message that has nothing else is left out too: of a conversation that ends with a spoken question, the request ends
#   with the answer before it. An image in an answer of the model disappears alike.
# Why it matters for chat memory: a tool or an option may switch the API of a stored conversation. The model then
#   answers a question that it was not sent, and the stored conversation looks complete.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check langchain-openai==1.7.3 langchain-core==1.7.2
cat > "$folder/program.py" <<'PYTHON'
from langchain_core.messages import AIMessage, HumanMessage
from langchain_openai import ChatOpenAI

audio = {"type": "audio", "base64": "UklGRg==", "mime_type": "audio/wav"}
image = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
video = {"type": "video", "base64": "AAAA", "mime_type": "video/mp4"}
drawn = AIMessage([{"type": "text", "text": "Here it is."}, image])
messages = [HumanMessage("Draw a fig."), drawn, HumanMessage([audio])]
chat = ChatOpenAI(model="gpt-4o-audio-preview", api_key="none")
responses = ChatOpenAI(model="gpt-4o-audio-preview", api_key="none", use_responses_api=True)
sent = chat._get_request_payload(messages)["messages"]
given = responses._get_request_payload(messages)["input"]
print("Chat Completions:", [[part["type"] for part in one["content"]] for one in sent[1:]])
print("Responses:       ", [[part["type"] for part in one["content"]] for one in given[1:]])
try:
    responses._get_request_payload([HumanMessage([video])])
    refused = None
except ValueError as error:
    refused = error
print("a video:         ", refused)
assert refused is not None, "the behaviour has changed: a video is not refused"
assert [[part["type"] for part in one["content"]] for one in sent[1:]][1] == ["input_audio"], "it has changed"
assert [one["role"] for one in given] == ["user", "assistant"], "the behaviour has changed: the question is sent"
assert [part["type"] for part in given[1]["content"]] == ["output_text"], "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
