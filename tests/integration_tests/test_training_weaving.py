"""Dialogs are woven into conversations as people interrupt and continue a subject."""

from __future__ import annotations

import random
from collections import defaultdict

import numpy as np
import pytest

from langchain_threadmem.selection.features.cues import leaning
from langchain_threadmem.selection.features.phrases import phrases_in
from training.corpus import dialogs
from training.sources import Conversation, Dialog, Pools
from training.weave import leans, quotation, told, variants, weave

ENGLISH = phrases_in("en")
TEXTS = {text for one in dialogs().values() for turn in one.turns for text in turn}
TEXTS |= {text for one in dialogs().values() for text in variants(one)}


@pytest.fixture(scope="module")
def woven() -> list[Conversation]:
    vectors = dict.fromkeys(TEXTS, np.zeros(1, np.float32))
    rng, pools = random.Random(0), Pools(list(dialogs().values()))
    return [weave(rng, pools, vectors) for _ in range(300)]


def messages(several: list[Conversation], kind: str) -> list[str]:
    """The human messages of a kind."""
    found = defaultdict[str, list[str]](list)
    for one in several:
        for place, turn in enumerate(one.turns):
            found[one.kind(place)].append(turn.human)
    return [text for text in found[kind] if text != text.lower()]  # Others are without marks.


def test_a_message_that_points_at_the_last_answer_is_woven_as_no_return(woven: list[Conversation]) -> None:
    returns, follow_ups = messages(woven, "return"), messages(woven, "continue")
    assert len(returns) > 100
    assert not any(leaning(text, ENGLISH) for text in returns)
    assert sum(leaning(text, ENGLISH) > 0 for text in follow_ups) > 50


def test_a_message_that_is_asked_again_or_quotes_an_answer_is_woven_as_a_branch(
    woven: list[Conversation],
) -> None:
    branches = messages(woven, "branch")
    quoting = [text for text in branches if " - " in text and '"' in text]
    assert len(branches) > len(quoting) > 5
    assert not any(leans(text, ENGLISH) for text in branches)


def test_some_threads_open_with_a_story(woven: list[Conversation]) -> None:
    stories = {told(one.turns[0][0]) for one in dialogs().values()} - {""}
    assert len(stories.intersection(messages(woven, "root"))) > 5


def test_a_quotation_stands_for_an_answer_before_the_last_two_turns() -> None:
    turns = [("Is it far?", "It is two hours by train."), ("And by car?", "Three."), ("Why?", "Hills.")]
    place, text = quotation(Dialog("a:1", "a", turns)) or (None, "")
    assert place == 0
    assert '"It is two hours by train"' in text
    assert quotation(Dialog("a:1", "a", turns[:2])) is None


def test_every_text_of_a_woven_conversation_can_be_embedded(woven: list[Conversation]) -> None:
    known = {text.lower().translate(str.maketrans("", "", "?!.,;:")) for text in TEXTS}
    for one in woven:
        for turn in one.turns:
            assert turn.human.lower().translate(str.maketrans("", "", "?!.,;:")) in known


@pytest.mark.parametrize(
    ("language", "short", "named"),
    [
        ("en", "Two, please.", "Which yeast did you mean for the rye?"),
        ("es", "Sí, gracias.", "¿Qué levadura necesito para el pan de centeno?"),
        ("ja", "はい、お願いします", "ライ麦パンにはどのイーストが必要ですか"),
    ],
)
def test_a_short_message_names_no_subject_in_any_language(language: str, short: str, named: str) -> None:
    phrases = phrases_in(language)
    assert leans(short, phrases)
    assert not leans(named, phrases)
