#!/usr/bin/env bash
# langchain-core 1.7.2 with langchain-openai 1.7.3, langchain-anthropic 1.7.7, langchain-google-genai 4.4.2,
# langchain-ollama 1.1.0 and langchain-aws 1.9.1: a document of plain text as a standard content block.
#
# One would guess: a block that `create_plaintext_block` of langchain-core has made can be sent to each provider, as a
#   document or as text, since it is one of LangChain's standard blocks, and it is text.
# What happens: a block with its text is sent by the client of Anthropic alone. Those of OpenAI (Chat and Responses),
#   Ollama and Bedrock raise a ValueError that the type is unsupported, as does `convert_to_openai_messages` of
#   langchain-core. Gemini's client wants base64, with which that of Anthropic raises a KeyError: no form of the block
#   is accepted by two of them.
# Why it matters for chat memory: one stored message with an attached text ties its conversation to one provider: a
#   fallback model, or another model next week, cannot be called with it. A text block can be sent everywhere.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check \
    langchain-core==1.7.2 langchain-openai==1.7.3 langchain-anthropic==1.7.7 langchain-google-genai==4.4.2 \
    langchain-ollama==1.1.0 langchain-aws==1.9.1
cat > "$folder/program.py" <<'PYTHON'
from langchain_anthropic import ChatAnthropic
from langchain_aws.chat_models.bedrock_converse import _messages_to_bedrock
from langchain_core.messages import HumanMessage, convert_to_openai_messages
from langchain_core.messages.content import create_plaintext_block
from langchain_google_genai.chat_models import _parse_chat_history
from langchain_ollama import ChatOllama
from langchain_openai import ChatOpenAI

clients = {
    "langchain-core": convert_to_openai_messages,
    "OpenAI": ChatOpenAI(model="gpt-4o", api_key="none")._get_request_payload,
    "OpenAI Responses": ChatOpenAI(model="gpt-4o", api_key="none", use_responses_api=True)._get_request_payload,
    "Anthropic": ChatAnthropic(model="claude-sonnet-4-5", api_key="none", max_tokens=10)._get_request_payload,
    "Gemini": _parse_chat_history,
    "Ollama": ChatOllama(model="llama3.2")._convert_messages_to_ollama_messages,
    "Bedrock": _messages_to_bedrock,
}
forms = {
    "text": create_plaintext_block("Buy figs."),
    "base64": create_plaintext_block(base64="QnV5IGZpZ3Mu"),
}
accepted = {}
for form, block in forms.items():
    for name, convert in clients.items():
        try:
            convert([HumanMessage([{"type": "text", "text": "Summarise:"}, dict(block)])])
            accepted.setdefault(form, []).append(name)
            print(f"{form:7}{name:17}accepted")
        except Exception as error:
            print(f"{form:7}{name:17}{type(error).__name__}: {error}")
assert accepted == {"text": ["Anthropic"], "base64": ["Gemini"]}, f"the behaviour has changed: {accepted}"
PYTHON
"$folder/venv/bin/python" -W ignore "$folder/program.py"
