"""Second looks: an answer can lower the probability of the place of its turn."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from langchain_threadmem.errors import InputError
from langchain_threadmem.selection import second_look
from langchain_threadmem.selection.choice import CHANCES_KEPT, choose
from langchain_threadmem.selection.features.structure import detached
from langchain_threadmem.selection.features.table import FEATURES
from langchain_threadmem.selection.model import reader
from langchain_threadmem.selection.second_look import (
    LATE,
    READ_AGAIN,
    SURE,
    SecondLook,
    look_again,
    reconsidered,
)
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.tree.node import Chances

CSV = TurnEnd(2, None, "How do I read a CSV file in pandas?", "Call pandas.read_csv with its path.")
WINE = TurnEnd(4, None, "Which wine goes with grilled salmon?", "A dry Riesling or a Pinot Noir.")
DOUBTS: Chances = ((4, 0.6), (2, 0.35), (None, 0.05))
ABOUT_CSV = "Pass header=None to pandas.read_csv: the CSV file is then read without a header."
ABOUT_WINE = "With salmon a dry Riesling is the safest; the Pinot Noir should be a light one."


READER = reader()


def placed(answer: str, chances: Chances = DOUBTS, previous: int | None = 4) -> TurnEnd:
    return TurnEnd(6, previous, "And what if there is none?", answer, chances=chances)


def none(count: int) -> NDArray[np.float32]:
    return np.zeros((count, 0), np.float32)


def look(turn: TurnEnd) -> SecondLook | None:
    return look_again([CSV, WINE], none(2), none(2), turn, None, reader(), None)


def believed(*turns: TurnEnd) -> list[TurnEnd]:
    count = len(turns)
    return reconsidered(turns, none(count), none(count), "words", READER)


def test_an_answer_about_another_thread_casts_doubt_on_the_choice() -> None:
    turn = believed(CSV, WINE, placed(ABOUT_CSV))[-1]
    assert turn.previous == 2
    assert turn.chances[0][0] == 2


def test_an_answer_about_the_thread_that_was_chosen_does_not_make_the_choice_surer() -> None:
    assert believed(CSV, WINE, placed(ABOUT_WINE))[-1] == placed(ABOUT_WINE)


@pytest.mark.parametrize(
    "turn",
    [
        pytest.param(placed(ABOUT_CSV, ()), id="placed by a person or a model"),
        pytest.param(placed(ABOUT_CSV, ((4, SURE + 0.001), (2, 0.003))), id="placed surely"),
        pytest.param(placed(ABOUT_CSV, previous=2), id="placed elsewhere than was likeliest"),
        pytest.param(placed(ABOUT_CSV, ((None, 0.6), (3, 0.4)), None), id="nothing is left that was likely"),
    ],
)
def test_a_turn_is_left_alone(turn: TurnEnd) -> None:
    assert look(turn) is None
    assert believed(CSV, WINE, turn)[-1] is turn


def test_what_was_likely_and_is_gone_is_no_candidate() -> None:
    found = look(placed(ABOUT_CSV, ((4, 0.5), (2, 0.3), (3, 0.2))))
    assert found is not None
    assert found.ids == [2, 4, None]


def test_the_rows_tell_how_likely_each_candidate_was_and_which_was_chosen() -> None:
    found = look(placed(ABOUT_CSV))
    assert found is not None
    assert found.rows.shape == (3, len(FEATURES) + 2)
    assert np.exp(found.rows[:, -2]) == pytest.approx([0.35, 0.6, 0.05])
    assert found.rows[:, -1].tolist() == [0.0, 1.0, 0.0]


def test_later_choices_go_by_what_is_believed() -> None:
    def chance(turn: TurnEnd) -> float:
        turns = [CSV, WINE, turn]
        return choose(
            turns, none(3), none(3), "And if the columns have no names either?", None
        ).probabilities[2]

    # With the turn believed to be of the thread, nobody goes back to before it.
    assert chance(placed(ABOUT_CSV)) < chance(placed(ABOUT_WINE))


@pytest.mark.parametrize(
    ("answer", "previous", "clear"),
    [
        pytest.param((0.1, 0.9), 4, True, id="clearly about the thread that was chosen"),
        pytest.param((0.9, 0.1), 4, False, id="about another one"),
        pytest.param((0.6, 0.7), 4, False, id="about both"),
        pytest.param((0.0, 0.3), 4, False, id="about nothing much"),
        pytest.param((0.1, 0.1), None, True, id="a new thread, about none of the others"),
        pytest.param((0.1, 0.5), None, False, id="a new thread, about one of the others"),
    ],
)
def test_an_answer_that_leaves_no_doubt_is_not_looked_at(
    answer: tuple[float, float], previous: int | None, clear: bool
) -> None:
    said = np.eye(3, dtype=np.float32)[:2]
    vector = np.array([*answer, (1 - answer[0] ** 2 - answer[1] ** 2) ** 0.5], np.float32)
    chances = [(previous, 0.6), *((id_, 0.2) for id_ in (None, 2, 4) if id_ != previous)]
    turn = placed(ABOUT_CSV, tuple(chances), previous)
    assert (look_again([CSV, WINE], said, said, turn, vector, reader(), None) is None) == clear


def test_after_a_correction_a_turn_is_looked_at_once_more() -> None:
    turn = placed(ABOUT_CSV)
    moved = WINE._replace(previous=2)
    before = believed(CSV, WINE, turn)[-1].chances
    assert believed(CSV, moved, turn)[-1].chances != before
    assert believed(CSV, WINE, turn)[-1].chances == before


def test_a_turn_is_looked_at_once_whatever_older_turns_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    def counted(*given: Any) -> SecondLook | None:
        looked.append(given[3].id)
        return look_again(*given)

    monkeypatch.setattr(second_look, "look_again", counted)
    newest, threads = LATE + READ_AGAIN, 10
    told = [
        TurnEnd(
            n,
            before,
            f"What about {n % threads}?",
            f"All about it: {n}.",
            chances=((before, 0.6), (n - 1, 0.4)),
        )
        for n in range(1, newest + 20)
        for before in (n - threads if n > threads else None,)
    ]
    read = reader()
    for count in range(newest + 1, len(told)):
        # The predecessors of the oldest turns are known to every other choice only.
        late = told[count - newest : count]
        first = told[count - newest - threads : count - newest] if count % 2 else []
        ends = detached([*first, *late])
        reconsidered(ends, none(len(ends)), none(len(ends)), "words", read)
    assert len(looked) == len(set(looked)) > LATE


def test_a_turn_of_long_ago_is_not_looked_at_again() -> None:
    turn = placed(ABOUT_CSV)
    later = [TurnEnd(8 + 2 * n, None, "Hello", "Hi!") for n in range(LATE)]
    assert believed(CSV, WINE, turn, *later[1:])[2].previous == 2
    assert believed(CSV, WINE, turn, *later)[2] is turn


def test_a_turn_that_continues_an_unknown_one_is_refused() -> None:
    unknown = TurnEnd(6, 3, "And?", "So.", chances=((3, 0.6), (2, 0.4)))
    with pytest.raises(InputError, match="continues 3"):
        choose([CSV, WINE, unknown], none(3), none(3), "Hello", None)


def test_the_reason_is_in_words_of_the_tree_as_it_is() -> None:
    stray = TurnEnd(6, 2, "And what if there is none?", ABOUT_WINE, chances=((2, 0.6), (4, 0.4)))
    assert believed(CSV, WINE, stray)[-1].previous == 4
    choice = choose([CSV, WINE, stray], none(3), none(3), "And can pandas read a CSV file by its URL?", None)
    assert choice.parent_id == 2
    assert choice.reason.startswith("branches off after 'How do I read a CSV")


def test_an_erased_parent_is_not_believed_in() -> None:
    turn = placed(ABOUT_CSV)
    assert believed(CSV, WINE, turn)[-1].previous == 2
    assert believed(WINE, turn)[-1].previous != 2


answers = st.sampled_from([ABOUT_CSV, ABOUT_WINE, "Yes.", "How many?", ""])


@st.composite
def grown(draw: st.DrawFn) -> list[TurnEnd]:
    turns: list[TurnEnd] = []
    for number in range(draw(st.integers(1, 10))):
        ids: list[int | None] = [None, *(turn.id for turn in turns)]
        likely = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=CHANCES_KEPT, unique=True))
        weights = sorted((draw(st.floats(0.01, 1.0)) for _ in likely), reverse=True)
        chances = tuple((id_, weight / sum(weights)) for id_, weight in zip(likely, weights, strict=True))
        turns.append(
            TurnEnd(
                2 * number + 2,
                likely[0] if turns else None,
                draw(answers),
                draw(answers),
                chances=chances if turns else (),
            )
        )
    return turns


@given(grown())
def test_what_is_believed_is_a_tree_of_the_same_turns(turns: list[TurnEnd]) -> None:
    found = believed(*turns)
    assert [turn._replace(previous=None, chances=()) for turn in found] == [
        turn._replace(previous=None, chances=()) for turn in turns
    ]
    for place, turn in enumerate(found):
        assert turn.previous is None or turn.previous in {earlier.id for earlier in found[:place]}


@given(grown())
def test_a_choice_never_gets_surer(turns: list[TurnEnd]) -> None:
    for before, after in zip(turns, believed(*turns), strict=True):
        if before.chances:
            assert dict(after.chances).get(before.previous, 0.0) <= before.chances[0][1] + 1e-9


@given(grown())
def test_a_second_time_the_same_is_believed(turns: list[TurnEnd]) -> None:
    assert believed(*turns) == believed(*turns)
