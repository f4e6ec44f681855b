"""Constant text: what most human messages of a conversation share does not change where a message goes."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem, SemanticNodeSelector
from langchain_threadmem.errors import InputError, SelectionError
from langchain_threadmem.messages.constant_text import constant_text
from langchain_threadmem.messages.courtesies import thanks_at_end
from tests.conftest import WordEmbeddings

Wrap = Callable[[ChatMemory], Any]
START = datetime(2026, 11, 27, 12, 7)
SAID = [
    ("How do I skip the header row of the CSV file?", "Pass skiprows=1 to read_csv."),
    ("My sourdough bread is flat, why?", "The dough needs more time to rise."),
    ("Yes, the dough rose for two hours", "Give the dough four hours."),
    ("Does read_csv skip a comment row of the file?", "Pass comment='#' to read_csv."),
    ("Which museum in Lisbon is open on Monday?", "The tile museum in Lisbon is closed on Monday."),
    ("ok", "Enjoy the museum!"),
    ("And 3 columns of the CSV file at 7:30?", "Pass usecols to read_csv."),
]
MESSAGES = [human for human, _ in SAID]


def stamped(form: str) -> Callable[[str, int], str]:
    return lambda text, place: f"{(START + place * timedelta(hours=29)).strftime(form)}{text}"


def by_turns(*forms: str) -> Callable[[str, int], str]:
    return lambda text, place: forms[place % len(forms)].format(text)


def always(form: str) -> Callable[[str, int], str]:
    return by_turns(form)


DOCUMENTS = ("Invoice 12 was paid.\nNote: keep it.", "Trains leave every hour.", "Rye absorbs water.")
WRAPPINGS: dict[str, Callable[[str, int], str]] = {
    "thanks and a name": always("{} Thanks, Ada"),
    "a time stamp": stamped("[%Y-%m-%d %H:%M] "),
    "a prompt template": always("Context: you are a helpful assistant.\n\nQuestion: {}"),
    "tags": always("<user_query>{}</user_query>"),
    "a speaker": always("user ada: {}"),
    "a switch": always("{} /no_think"),
    "a greeting": always("Hi, {}"),
    "thanks": always("{} Thank you!"),
    "a signature": always("{}\n--\nAda Lovelace, Analytical Engines"),
    "tags on lines of their own": always("<user_query>\n{}\n</user_query>"),
    "several greetings": by_turns("Hi, {}", "Hello! {}", "Good morning, {}", "Hey there, {}"),
    "several thanks": by_turns("{} Thanks!", "{} Many thanks, Ada", "{} thx"),
    "Spanish": always("Hola, {} Muchas gracias, Marta"),
    "German": always("Guten Tag, {} Vielen Dank!"),
    "French": always("Bonjour, {} Merci d'avance."),
    "Italian": always("Ciao! {}\nGrazie mille"),
    "Portuguese": always("Olá, {} Obrigado!"),
    "Japanese": always("こんにちは。{}よろしくお願いします。"),
    "Chinese": always("你好，{}谢谢！"),
    "Hindi": always("नमस्ते, {} धन्यवाद"),
    "Swahili": always("Habari, {} Asante sana!"),
    "courtesies in turn": by_turns("Hi, how are you? {} Thanks!", "Hey hello, {}\n\nWarm regards,\nAda"),
    "courtesies in turn, in Italian": by_turns("Ehi ciao, {} Un abbraccio", "Salve, come va? {} Grazie!"),
    "courtesies in turn, in Spanish": by_turns(
        "Hola otra vez, {} ¡Mil gracias!", "Qué tal, {} se agradece 🙏"
    ),
    "courtesies in turn, in Portuguese": by_turns("Oi, tudo bem? {}\nAbraço,\nAna", "Olá! {} Valeu!"),
    "drawn out words, emoji and smileys": by_turns("Hiii :) {} thx 🙏", "Heya Bob 👋 {} Thank youuu!"),
    "signatures in turn": by_turns("{}\n\nBest, Ada", "{}\n\nThanks, Ada", "{}\n\nTake care,\nAda B."),
    "a letter": always("Dear assistant,\n\n{}\n\nBest regards,\nAda\nSent from my iPhone"),
    "a mention": always("@assistant {}"),
    "a command": always("/ask {}"),
    "a speaker with the time": stamped("Ada (%H:%M): "),
    "a date of a letter": stamped("%a, %d %b %Y %H:%M:%S +0000\n"),
    "a time with a dash": stamped("%I:%M %p - "),
    "a number": lambda text, place: f"Message #{place + 1}: {text}",
    "JSON": lambda text, place: json.dumps({"user": "Ada", "day": f"2026-11-{place + 10}", "text": text}),
    "JSON with an id": lambda text, place: json.dumps({"text": text, "id": place}, indent=1),
    "JSON with a language": lambda text, place: json.dumps({"text": text, "language": "en"}),
    "an instruction": always("Follow the instruction.\n\n### Instruction:\n{}\n\n### Response:"),
    "a chat template": always("<|im_start|>user\n{}<|im_end|>"),
    "brackets": always("[INST] {} [/INST]"),
    "bold": always("**User:** {}"),
    "passages": lambda text, place: f"Context:\n{DOCUMENTS[place % 3]}\n\nQuestion: {text}\n\nAnswer:",
    "passages in tags": lambda text, place: (
        f"<files>\n{DOCUMENTS[place % 3]}\n</files>\n<user_query>\n{text}\n</user_query>"
    ),
}
OF_SEVERAL = {
    "a name": (always("Ada {}"), 6),
    "a wish": (always("{} please"), 6),
    "a call": (always("hey jarvis {}"), 3),
    "two speakers": (by_turns("Ada: {}", "Bob: {}"), 3),
    "an emphasis": (always("{} 🙂"), 2),
}


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
def test_constant_text_is_taken_out_from_the_second_message_on(wrap: Callable[[str, int], str]) -> None:
    wrapped = [wrap(text, place) for place, text in enumerate(MESSAGES)]
    for count in range(2, len(wrapped) + 1):
        constant = constant_text(wrapped[:count])
        assert [constant.without(text) for text in wrapped[:count]] == MESSAGES[:count]


@pytest.mark.parametrize(("wrap", "messages"), OF_SEVERAL.values(), ids=OF_SEVERAL)
def test_words_that_nothing_divides_from_the_rest_are_constant_after_several_messages(
    wrap: Callable[[str, int], str], messages: int
) -> None:
    wrapped = [wrap(text, place) for place, text in enumerate(MESSAGES)]
    constant = constant_text(wrapped[:messages])
    assert [constant.without(text) for text in wrapped] == MESSAGES


@pytest.mark.parametrize(
    "messages",
    [
        MESSAGES,
        ["Hello!", "How do I read a file?", "How do I write a file?", "How do I close it?"],
        ["What is rye?", "What is wheat?", "What is spelt?"],
        ["¿Qué es el centeno?", "¿Y el trigo?", "¿Cuál prefieres?", "¿Por qué?"],
        ["yes", "yes", "yes", "Yes, please"],
        ["Is rye sour? Say yes or no.", "Is rye sour? Say yes or no."],
        ["Bye", "Thanks", "Hi"],
        [""],
        [],
    ],
)
def test_messages_that_share_words_by_chance_are_compared_as_a_whole(messages: list[str]) -> None:
    constant = constant_text(messages)
    assert [constant.without(text) for text in messages] == messages


def test_a_message_of_constant_text_alone_is_compared_as_a_whole() -> None:
    constant = constant_text(["[12:07] Hi, is rye sour?", "[12:09] Hi, and wheat?"])
    assert [constant.without(text) for text in ["[12:11] Hi", "[12:12]", "Hi"]] == ["Hi", "[12:12]", "Hi"]


def test_a_greeting_or_a_stamp_of_few_messages_is_no_constant_text() -> None:
    messages = ["Hi, is rye sour?", "[12:07] And wheat?", "Why?", "Who grows it?"]
    constant = constant_text(messages)
    assert [constant.without(text) for text in messages] == messages


def test_only_thanks_at_the_end_are_constant() -> None:
    constant = constant_text(["Is rye sour? Thanks!", "Thanks, that helps. And wheat? Thanks!"])
    assert constant.without("Thanks, that helps. And wheat? Thanks!") == "Thanks, that helps. And wheat?"


@pytest.mark.parametrize(
    "thanks",
    [
        *(
            "Thanks!",
            "THANK YOU, Ada",
            "KİND REGARDS,\nAda",
            "Vielen Dank",
            "TEŞEKKÜRLER",
            "sağol",
            "SAYGILARIMLA",
        ),
        *("Спасибо!", "धन्यवाद", "شكرا جزيلا", "ありがとうございます", "谢谢", "cảm ơn", "고마워요"),
    ],
)
def test_thanks_are_found_in_any_case_and_language(thanks: str) -> None:
    assert thanks_at_end(f"Is rye sour? {thanks}") == 13
    assert (
        thanks_at_end(f"{thanks} Is rye sour, or does it taste as sweet as the wheat of last year?") is None
    )


@pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=WRAPPINGS)
@pytest.mark.parametrize("embeddings", [WordEmbeddings(), False], ids=["vectors", "words"])
def test_wrapped_messages_go_where_the_plain_messages_go(
    wrap: Callable[[str, int], str], embeddings: WordEmbeddings | bool
) -> None:
    with MemorySystem(embeddings=embeddings) as system:
        found = []
        for name, form in (("plain", always("{}")), ("wrapped", wrap)):
            memory = system.conversation(name, node_selector=SemanticNodeSelector())
            turns = [memory.append(form(human, place), ai) for place, (human, ai) in enumerate(SAID)]
            found.append([human.parent_id for human, _ in turns])
        assert found[1] == found[0]
        assert memory.history[0].message.content == wrap(MESSAGES[0], 0)


class Recording(WordEmbeddings):
    """Word embeddings that record the texts."""

    model_name = "recording"

    def __init__(self) -> None:
        self.texts: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.texts += texts
        return super().embed_documents(texts)


def test_each_message_is_embedded_once_and_without_its_constant_text(url: str, verbs: Wrap) -> None:
    embeddings = Recording()
    with MemorySystem(url, owner=uuid4().hex, embeddings=embeddings) as system:
        memory = verbs(system.conversation("talk", node_selector=SemanticNodeSelector()))
        for place, (human, ai) in enumerate(SAID):
            memory.append(f"[12:{place:02}] Hi, {human}", ai)
    assert sorted(embeddings.texts) == sorted([*MESSAGES, *(ai for _, ai in SAID[:-1])])


def test_an_imported_conversation_is_embedded_without_its_constant_text(url: str) -> None:
    embeddings = Recording()
    with MemorySystem(url, owner=uuid4().hex, embeddings=embeddings) as system:
        memory = system.conversation("talk")
        memory.extend([HumanMessage(f"user ada: {text}") for text in MESSAGES])
        system.flush()
        assert set(embeddings.texts) >= set(MESSAGES)


def body(message: BaseMessage) -> str:
    """The text after the first blank line of a message."""
    return message.text.partition("\n\n")[2]


def test_messages_are_compared_by_the_text_that_the_caller_returns(system: MemorySystem, verbs: Wrap) -> None:
    plain = verbs(system.conversation("plain", node_selector=SemanticNodeSelector()))
    mailed = verbs(system.conversation("mail", node_selector=SemanticNodeSelector(text_of=body)))
    parents = []
    for memory, form in ((plain, "{1}"), (mailed, "{0}\n\n{1}")):
        turns = [
            memory.append(form.format(f"Subject: {ai}", human), AIMessage(ai))
            for human, ai in zip(MESSAGES, MESSAGES[::-1], strict=True)
        ]
        parents.append([nodes[0].parent_id for nodes in turns])
    assert parents[0] == parents[1]
    assert mailed.history()[0].message.text.startswith("Subject: ")


def test_the_text_that_the_caller_returns_is_used_without_a_memory_too(system: MemorySystem) -> None:
    memory = system.conversation("mail")
    for human, ai in SAID:
        memory.append(f"Subject: none\n\n{human}", ai)
    asked: list[str] = []

    def recorded(message: BaseMessage) -> str:
        asked.append(message.text)
        return body(message)

    selector = SemanticNodeSelector(embeddings=WordEmbeddings(), text_of=recorded)
    assert selector.select_parent(memory.graph, HumanMessage("Subject: x\n\nand the CSV file?")) is not None
    assert len(asked) == len(SAID) + 1


def test_a_text_that_is_no_string_fails_the_selection(system: MemorySystem, verbs: Wrap) -> None:
    selector = SemanticNodeSelector(text_of=lambda message: None)  # type: ignore[arg-type,return-value]
    memory = verbs(system.conversation("talk", node_selector=selector, on_selection_failure="raise"))
    memory.append("one", "two")
    with pytest.raises(SelectionError, match="text_of returned None"):
        memory.append("three")
    with pytest.raises(InputError, match="text_of='text' is no function"):
        SemanticNodeSelector(text_of="text")  # type: ignore[arg-type]
