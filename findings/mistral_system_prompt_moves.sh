#!/usr/bin/env bash
# mistral-common 1.13.1, the tokenizers v3 (Mistral 7B 0.3, Mixtral 8x22B, Nemo) and v7 (Mistral Large 2411 and later).
#
# Guess: a system prompt is the first thing of a prompt, so that the prompt of a turn begins with the whole prompt of
# the turn before, and a cache of prefixes serves all of it.
#
# What happens: v3 writes the system prompt and the list of tools before the *last* message of the user. The prompt of
# the second turn has only the two first tokens in common with that of the first; that of the third differs from the
# second one where the second question stood. v7 writes the system prompt first, and each prompt begins with the whole
# prompt before it.
#
# Why it matters for chat memory: with the same list of messages, what a longer history costs depends on the template.
# A long system prompt (instructions, recalled facts, tools) is computed anew in every turn, and figures on cached
# tokens that were measured with one model do not carry over to another model of the same family.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "mistral-common==1.13.1" "sentencepiece==0.2.1"
"$folder/venv/bin/python" - <<'PROGRAM'
import sys

from mistral_common.protocol.instruct.messages import AssistantMessage, SystemMessage, UserMessage
from mistral_common.protocol.instruct.request import ChatCompletionRequest
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

turns = [
    SystemMessage(content="Answer in one sentence, and name the source."),
    UserMessage(content="Where do figs grow?"),
    AssistantMessage(content="In the south."),
    UserMessage(content="And olives?"),
    AssistantMessage(content="There too."),
    UserMessage(content="Which need more water?"),
]


def prompts(tokenizer):
    return [tokenizer.encode_chat_completion(ChatCompletionRequest(messages=turns[:n])) for n in (2, 4, 6)]


def shared(one, two):
    return next((i for i, (a, b) in enumerate(zip(one, two)) if a != b), min(len(one), len(two)))


seen = {}
for name, tokenizer in {"v3": MistralTokenizer.v3(), "v7": MistralTokenizer.v7()}.items():
    first, second, third = (prompt.tokens for prompt in prompts(tokenizer))
    seen[name] = [(len(first), shared(first, second)), (len(second), shared(second, third))]
    print(name, "tokens of a prompt, and how many of them begin the next one:", seen[name])
    print(name, prompts(tokenizer)[1].text)
moved = seen["v3"][0][1] == 2 and seen["v3"][1][1] < seen["v3"][1][0]
stays = all(length == common for length, common in seen["v7"])
sys.exit(0 if moved and stays else 1)
PROGRAM
