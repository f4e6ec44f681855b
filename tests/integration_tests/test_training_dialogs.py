"""Conversations and dialogs that were written for this project can be read, and agents can have them."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks import agents
from training.corpus import HELD_OUT, PARTS, SPOKEN, UNSEEN_FOLDER, Written, dialogs, parse, written

UNSEEN = written(UNSEEN_FOLDER / "conversations")
ALL = written() + UNSEEN


def test_every_conversation_has_a_name_of_its_own() -> None:
    assert len({one.name for one in ALL}) == len(ALL)
    assert {one.part for one in ALL} == {*PARTS, HELD_OUT}


@pytest.mark.parametrize("part", [*PARTS, HELD_OUT])
def test_turns_continue_earlier_ones_of_their_matters(part: str) -> None:
    for one in ALL:
        if one.part == part:
            check(one)


def test_turns_of_chats_continue_earlier_ones_of_their_matters() -> None:
    chats = written(UNSEEN_FOLDER / "chats")
    assert Counter(one.part for one in chats) == {"read": 6, "apart": 6}
    for one in chats:
        check(one)


def check(one: Written) -> None:
    opened = set()
    for place, turn in enumerate(one.turns):
        assert (turn.previous is None) == (turn.matter not in opened), (one.name, place)
        if turn.previous is not None:
            assert turn.previous < place
            assert one.turns[turn.previous].matter == turn.matter
        opened.add(turn.matter)


def test_dialogs_by_themselves_have_kinds_of_several() -> None:
    found = dialogs()
    assert {one.source for one in found.values()} == set(SPOKEN)
    of_kind = Counter(one.kind for one in found.values())
    assert min(of_kind.values()) > 2, "a kind of which there is one dialog cannot be woven with its like"
    assert all(len(one.turns) > 2 for one in found.values())


def test_no_dialog_is_there_twice() -> None:
    several = [*dialogs().values(), *dialogs(UNSEEN_FOLDER / "dialogs").values()]
    openings = Counter(one.turns[0] for one in several)
    assert [turn for turn, count in openings.items() if count > 1] == []


def test_a_branch_goes_back_to_the_turn_that_is_named() -> None:
    text = "# a-b\nx | 1\n= one\nx | 2\n= two\\nlines\n~ look {} -> seen\nx<1 | 3\n= three\nx | 4\n= four\n"
    [one] = parse(text.replace("~ look {} -> seen\nx<1 | 3\n", "x<1 | 3\n~ look {} -> seen\n"))
    assert [turn.previous for turn in one.turns] == [None, 0, 0, 2]
    assert one.turns[1].answer == "two\nlines"
    assert [call.tool for call in one.turns[2].calls] == ["look"]


def test_a_line_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a message"):
        list(parse("# a-b\nx | 1\n= one\nsomething else\n"))


def test_an_agent_has_a_written_conversation() -> None:
    lines = agents.measure(words=True, limit=1)
    figures = {(line.what, line.beside): line.figure for line in lines}
    shown = figures["agents: tokens shown, of the whole history", "no model asked"]
    assert 0 < float(shown.removesuffix(" %")) < 100
