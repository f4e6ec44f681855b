"""Choice of a parent: continued turns, returns to earlier turns, new roots, and refused input."""

import json
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from langchain_threadmem.errors import InputError
from langchain_threadmem.selection.choice import CHANCES_KEPT, GOES_BACK, choose, weigh
from langchain_threadmem.selection.features.cues import MESSAGE_CUES, end_cues, message_cues, names, terms
from langchain_threadmem.selection.features.phrases import Phrases, phrases_in
from langchain_threadmem.selection.features.similarity import RAREST
from langchain_threadmem.selection.features.structure import (
    LEAST_CHANCE,
    RECENT_THREADS,
    RECENT_TURNS,
    SIMILAR_THREADS,
    SIMILAR_TURNS,
    USUALLY_OPENS,
    USUALLY_STAYS,
    habits,
)
from langchain_threadmem.selection.features.table import FEATURES, describe
from langchain_threadmem.selection.features.words import Reader
from langchain_threadmem.selection.model import (
    MOST_AT_HOME,
    Way,
    _arrays,
    compatibility,
    input_of,
    networks,
    reader,
    score,
    word_vectors,
)
from langchain_threadmem.selection.turn_ends import TurnEnd
from langchain_threadmem.tree.node import MessageSummary

Floats = NDArray[np.float32]

CSV = TurnEnd(2, None, "How do I read a CSV file in pandas?", "Call pandas.read_csv with its path.")
WINE = TurnEnd(4, None, "Which wine goes with grilled salmon?", "A dry Riesling or a Pinot Noir.")
RUN = TurnEnd(6, None, "I want to start running, where do I begin?", "How many days a week can you run?")
TURNS = [CSV, WINE, RUN]


LATER = (
    "Is there parking near the restaurant in town?",
    "Can they do something without meat?",
    "How do I get there from the station?",
    "Which day was it again?",
    "Make it Saturday.",
)


def no_vectors(count: int) -> Floats:
    return np.zeros((count, 0), np.float32)


def on_words(message: str, turns: list[TurnEnd] = TURNS) -> int | None:
    return choose(turns, no_vectors(len(turns)), no_vectors(len(turns)), message, None).parent_id


def heard(message: str, cues: Phrases | None = None) -> dict[str, float]:
    return dict(zip(MESSAGE_CUES, message_cues(message, cues or phrases_in("en")), strict=True))


def column(rows: NDArray[np.float64], name: str) -> list[float]:
    found: list[float] = rows[:, FEATURES.index(name)].tolist()
    return found


def unit(rows: NDArray[np.float64]) -> Floats:
    scaled: Floats = (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)
    return scaled


def topics(count: int, dimensions: int = 256, seed: int = 0) -> Floats:
    """Nearly orthogonal directions."""
    return unit(np.random.default_rng(seed).normal(size=(count, dimensions)))


def near(direction: Floats, seed: int) -> Floats:
    """A vector on the same topic: two of them have a cosine of about 0.5."""
    noise = np.random.default_rng(seed).normal(size=direction.shape) / np.sqrt(direction.shape[-1])
    return unit(direction + noise)


def three_topics() -> tuple[Floats, Floats]:
    return near(topics(3), 1), near(topics(3), 2)


def test_the_first_message_is_a_root() -> None:
    choice = choose([], no_vectors(0), no_vectors(0), "Hello", None)
    assert (choice.parent_id, dict(choice.probabilities)) == (None, {None: 1.0})


def test_an_answer_to_the_last_question_continues_the_last_thread() -> None:
    assert on_words("Three, I think") == RUN.id


def test_a_short_message_continues_the_last_thread() -> None:
    assert on_words("Why though?") == RUN.id


def test_shared_rare_words_return_to_an_older_thread() -> None:
    assert on_words("Does pandas guess the types of the columns in the CSV?") == CSV.id


def test_a_greeting_with_a_request_opens_a_root() -> None:
    assert on_words("Hello, I need a plumber for a leaking pipe in the kitchen") is None


def test_a_subject_that_nobody_spoke_of_opens_a_root_without_greeting_or_request() -> None:
    humans, answers = three_topics()
    message = "Which museum in Florence shows paintings by Botticelli?"
    assert choose(TURNS[:1], humans[:1], answers[:1], message, topics(4)[3]).parent_id is None


def test_similarity_returns_to_an_older_thread_that_shares_no_word() -> None:
    humans, answers = three_topics()
    vector = near(topics(3)[0], 3)
    choice = choose(TURNS, humans, answers, "And then skip its header, how is that done there?", vector)
    assert choice.parent_id == CSV.id


def test_a_request_that_resembles_nothing_opens_a_root() -> None:
    humans, answers = three_topics()
    message = "Can you explain the difference between a fugue and a canon in baroque music?"
    assert choose(TURNS, humans, answers, message, topics(4)[3]).parent_id is None


def test_the_nearest_text_alone_does_not_decide() -> None:
    humans, answers = three_topics()
    vector = unit(topics(4)[3] + 0.2 * topics(3)[0])
    assert int(np.argmax(np.maximum(humans @ vector, answers @ vector))) == TURNS.index(CSV)
    assert choose(TURNS, humans, answers, "Yes, two", vector).parent_id == RUN.id


def test_a_turn_that_was_continued_by_mistake_can_still_be_chosen() -> None:
    humans, answers = three_topics()
    stray = TurnEnd(4, 2, WINE.human, WINE.answer, chances=((2, 0.4), (None, 0.4)))
    message = "And can pandas find the separator of the CSV file by itself?"
    choice = choose([CSV, stray, RUN], humans, answers, message, near(topics(3)[0], 3))
    assert choice.parent_id == CSV.id
    assert choice.reason.startswith("branches off after 'How do I read a CSV file in pandas?'")


def test_a_thread_that_was_wound_up_is_less_likely_than_one_that_was_not() -> None:
    open_end = TurnEnd(2, None, "Book a table in Rome", "It is booked for Friday.")
    closed = TurnEnd(2, None, "Book a table in Rome", "You are welcome. Goodbye, and have a great day!")
    none = no_vectors(1)
    likely, unlikely = (
        sum(choose([turn], none, none, message, None).probabilities[2] for message in LATER)
        for turn in (open_end, closed)
    )
    assert likely > unlikely


def test_a_return_says_to_what_and_how_similar() -> None:
    humans, answers = three_topics()
    choice = choose(
        TURNS, humans, answers, "Does pandas read the header of the CSV file?", near(topics(3)[0], 3)
    )
    cosine = float(np.maximum(humans[0] @ near(topics(3)[0], 3), answers[0] @ near(topics(3)[0], 3)))
    assert choice.reason == f"returns to 'How do I read a CSV file in pandas?' (similarity {cosine:.2f})"


def test_a_return_inside_a_thread_names_the_turn_and_the_thread() -> None:
    header = TurnEnd(6, 2, "How do I skip its header row?", "Pass skiprows=1.")
    tyres = TurnEnd(8, None, "Which tyres fit a road bike?", "700x25c.")
    message = "And how do I skip two rows after the header?"
    choice = choose([CSV, WINE, header, tyres], no_vectors(4), no_vectors(4), message, None)
    title = "How do I read a CSV file in pandas?"
    assert choice.reason == f"returns to 'How do I skip its header row?' in {title!r}"


def test_a_return_is_named_by_the_title_of_its_summary() -> None:
    titled = TurnEnd(2, None, CSV.human, CSV.answer, summary=MessageSummary(title="CSV files", summary="."))
    none = no_vectors(3)
    choice = choose([titled, WINE, RUN], none, none, "Can pandas read a zipped CSV file too?", None)
    assert choice.reason == "returns to 'CSV files'"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("Three, I think", "continues the last thread"),
        ("Hello, I need a plumber for a leaking pipe", "new topic: opens with a greeting"),
    ],
)
def test_reasons_are_words_for_a_person(message: str, reason: str) -> None:
    assert choose(TURNS, no_vectors(3), no_vectors(3), message, None).reason == reason


def test_another_language_brings_its_own_cues() -> None:
    german = Phrases(greetings=("hallo", "guten tag"), replies=("ja", "nein"), requests=("ich brauche",))
    message = "Hallo, ich brauche jemanden, der meinen Wasserhahn in der Küche repariert"

    def opens(phrases: Phrases) -> float:
        reads = Reader(phrases, word_vectors())
        return choose(TURNS, no_vectors(3), no_vectors(3), message, None, reads=reads).probabilities[None]

    assert opens(german) > opens(Phrases())


@pytest.mark.parametrize(
    "greeting", ["Hello!", "Hi there", "hey, how are you?", "Good morning, are you there?"]
)
def test_the_first_request_continues_a_greeting(greeting: str) -> None:
    greeted = TurnEnd(2, None, greeting, "Hello! How can I help you today?")
    request = "I need help planning a trip to Lisbon in May"
    found = choose([greeted], no_vectors(1), no_vectors(1), request, None)
    assert found.parent_id == 2


def test_cues_without_words_match_nothing() -> None:
    told = heard("hello and yes, i need that", Phrases())
    assert [name for name, value in told.items() if value == 1.0] == ["brief"]


def test_cues_are_whole_words() -> None:
    assert not phrases_in("en").shown("highlight this", ["greetings"])


def test_typographic_apostrophes_are_plain_ones() -> None:
    assert heard("I\u2019m looking for a flat")["request"] == 1.0


def test_a_question_in_the_middle_of_an_answer_is_not_asked_of_the_user() -> None:
    answer = (
        "Why does it rain? Warm air rises, cools, and its water condenses into drops that fall in the end."
    )
    assert end_cues("Tell me", answer, phrases_in("en"))[0] == 0.0


@pytest.mark.parametrize(
    ("answer", "asks"),
    [
        ("How many?", True),
        ("Sure.\nHow many? Two or three fit.\n", True),
        ("人数は何人ですか？", True),
        ("Why? Who?? " + "x" * 59, True),
        ("Why? Who?? " + "x" * 60, False),
        ("Two.", False),
        ("", False),
    ],
)
def test_an_answer_asks_if_few_characters_follow_its_last_question(answer: str, asks: bool) -> None:
    assert end_cues("Tell me", answer, phrases_in("en"))[0] == asks


def test_a_long_text_is_read_at_both_ends() -> None:
    assert {"begin", "finish"} <= terms("begin " + "x " * 5000 + "finish", phrases_in("en"))


@pytest.mark.parametrize("shape", [(2, 8), (3, 9)])
def test_matrices_that_do_not_fit_are_refused(shape: tuple[int, int]) -> None:
    with pytest.raises(InputError, match=r"matrices of shape \(3, 8\)"):
        choose(TURNS, topics(*shape), topics(3, 8), "Hello", topics(1, 8)[0])


def test_a_vector_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InputError, match="not finite"):
        choose(TURNS, topics(3, 8), topics(3, 8), "Hello", np.full(8, np.nan, np.float32))


def test_a_stored_vector_that_is_not_finite_is_refused() -> None:
    broken = topics(3, 8)
    broken[1] = np.nan
    with pytest.raises(InputError, match="earlier turn is not finite"):
        choose(TURNS, broken, topics(3, 8), "Hello", topics(1, 8)[0])


def test_turn_ends_out_of_order_are_refused() -> None:
    with pytest.raises(InputError, match="oldest first"):
        on_words("Hello", [WINE, CSV])


def test_a_turn_end_that_continues_an_unknown_one_is_refused() -> None:
    with pytest.raises(InputError, match="continues 99"):
        on_words("Hello", [CSV, TurnEnd(4, 99, "And?", "So.")])


def test_a_turn_may_continue_a_later_turn_below_which_a_person_has_placed_it() -> None:
    car = TurnEnd(2, 4, "The car squeaks.", "Check the belt.")
    brakes = TurnEnd(4, None, "What about the brakes?", "Buy new pads.")
    wine = TurnEnd(6, None, "Which wine goes with fish?", "A dry white one.")
    assert on_words("And how much is a belt for the car?", [car, brakes, wine]) in (2, 4)


def test_the_number_of_candidates_does_not_grow_with_the_conversation() -> None:
    turns = [TurnEnd(2 * i + 2, None, f"Question {i}", f"Answer {i}") for i in range(500)]
    found = describe(turns, topics(500, 8, 1), topics(500, 8, 2), "Hello", topics(1, 8)[0], reader())
    assert len(found.positions) <= RECENT_TURNS + RECENT_THREADS + SIMILAR_THREADS + SIMILAR_TURNS


def test_an_old_thread_among_many_is_found_by_similarity() -> None:
    directions = topics(300)
    turns = [TurnEnd(2 * i + 2, None, f"Tell me of {i}", f"Here is {i} told.") for i in range(300)]
    choice = choose(turns, near(directions, 1), near(directions, 2), "Go on about it", directions[7])
    assert turns[7].id in choice.probabilities


texts = st.text("abc ?!'12\n", max_size=30) | st.sampled_from(
    ["Hello, I need a car", "yes", "How many?", "Bye!"]
)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[list[TurnEnd], Floats, Floats, str, Floats]:
    turns: list[TurnEnd] = []
    for i in range(draw(st.integers(1, 12))):
        previous = draw(st.none() | st.sampled_from(turns)) if turns else None
        turns.append(TurnEnd(2 * i + 2, previous.id if previous else None, draw(texts), draw(texts)))
    seed = draw(st.integers(0, 1000))
    count = len(turns)
    return turns, topics(count, 6, seed), topics(count, 6, seed + 1), draw(texts), topics(1, 6, seed + 2)[0]


@settings(max_examples=60)
@given(conversations())
def test_the_choice_is_the_likeliest_of_probabilities_that_sum_to_one(
    given_: tuple[list[TurnEnd], Floats, Floats, str, Floats],
) -> None:
    choice = choose(*given_)
    values = list(choice.probabilities.values())
    assert sum(values) == pytest.approx(1.0)
    assert values == sorted(values, reverse=True)
    assert choice.probabilities[choice.parent_id] == values[0]
    assert set(choice.probabilities) <= {turn.id for turn in given_[0]} | {None}


@settings(max_examples=60)
@given(conversations(), st.floats(0.1, 0.8))
def test_embeddings_whose_cosines_are_all_high_give_the_same_probabilities(
    given_: tuple[list[TurnEnd], Floats, Floats, str, Floats], shared: float
) -> None:
    turns, humans, answers, message, vector = given_

    def lift(rows: Floats) -> Floats:
        # Every cosine c becomes shared + (1 - shared) * c.
        common = np.full((*rows.shape[:-1], 1), np.sqrt(shared))
        return np.concatenate([rows * np.sqrt(1 - shared), common], axis=-1).astype(np.float32)

    plain = choose(turns, humans, answers, message, vector)
    lifted = choose(turns, lift(humans), lift(answers), message, lift(vector))
    assert dict(lifted.probabilities) == pytest.approx(dict(plain.probabilities), abs=1e-3)


@settings(max_examples=60)
@given(conversations())
def test_every_row_has_a_finite_number_for_every_column(
    given_: tuple[list[TurnEnd], Floats, Floats, str, Floats],
) -> None:
    found = describe(*given_, reader())
    assert found.rows.shape == (len(found.positions) + 1, len(FEATURES))
    assert np.isfinite(found.rows).all()


def test_a_doubtful_choice_counts_as_much_as_it_was_sure() -> None:
    doubtful = TurnEnd(6, 2, "And the header?", "Skip it.", chances=((2, 0.6), (4, 0.3), (None, 0.1)))
    found = describe([CSV, WINE, doubtful], no_vectors(3), no_vectors(3), "Hello", None, reader())
    assert column(found.rows, "continued_softly")[:3] == pytest.approx([0.6, 0.3, 0.0])
    assert column(found.rows, "continued")[:3] == [1.0, 0.0, 0.0]
    assert column(found.rows, "placed")[:3] == pytest.approx([1.0, 1.0, 0.6])


def test_a_choice_without_probabilities_is_certain() -> None:
    placed = TurnEnd(6, 2, "And the header?", "Skip it.")
    found = describe([CSV, WINE, placed], no_vectors(3), no_vectors(3), "Hello", None, reader())
    assert column(found.rows, "continued_softly")[:3] == [1.0, 0.0, 0.0]


def test_probabilities_of_candidates_that_are_gone_are_left_out() -> None:
    moved = TurnEnd(8, 2, "And the header?", "Skip it.", chances=((3, 0.9), (2, 0.1)))
    found = describe([CSV, WINE, moved], no_vectors(3), no_vectors(3), "Hello", None, reader())
    assert column(found.rows, "continued_softly")[:2] == pytest.approx([0.1, 0.0])


def test_a_similar_thread_of_an_unsure_turn_speaks_for_it_in_part() -> None:
    directions = topics(2)
    humans = answers = np.stack([directions[0], directions[1], directions[1]])

    def thread_of(chances: tuple[tuple[int | None, float], ...]) -> float:
        last = TurnEnd(6, 2, "a", "b", chances=chances)
        found = describe([CSV, WINE, last], humans, answers, "Hello", directions[0], reader())
        return column(found.rows, "soft_thread")[2]

    assert thread_of(((2, 1.0),)) > thread_of(((2, 0.5), (4, 0.5))) > thread_of(((4, 1.0),))


def test_what_is_kept_of_a_choice_is_its_likeliest_candidates() -> None:
    turns = [TurnEnd(2 * i + 2, None, f"Question {i}", f"Answer {i}") for i in range(20)]
    choice = choose(turns, no_vectors(20), no_vectors(20), "Tell me more", None)
    assert choice.stored_chances[0] == (choice.parent_id, choice.probabilities[choice.parent_id])
    assert len(choice.stored_chances) <= CHANCES_KEPT
    assert all(chance >= LEAST_CHANCE for _, chance in choice.stored_chances)
    assert len(choice.stored_chances) < len(choice.probabilities)


def test_a_value_is_a_number_or_a_name_inside_a_sentence() -> None:
    assert names("Then take Ada to 12 Mill Lane", phrases_in("en")) == {"ada", "12", "mill", "lane"}


def test_what_was_learned_on_one_model_is_used_for_its_vectors_only() -> None:
    assert input_of("all-MiniLM-L6-v2@8199be6f", 384) == "local"
    assert input_of("all-MiniLM-L6-v2", 128) == "vectors"
    assert input_of("text-embedding-3-small", 384) == "vectors"
    assert input_of("all-MiniLM-L6-v2", None) == "words"


def test_the_data_file_holds_plain_numbers_and_says_what_they_were_fitted_on() -> None:
    for way in get_args(Way):
        held = networks(way)
        assert held.inner.shape[1] == len(FEATURES) == len(held.mean)
        assert np.isfinite(held.inner).all()
    learned = compatibility()
    assert learned is not None
    assert learned.answer.shape == (384, 384)
    assert not {"locomo", "beam", "inscit"} & set(json.loads(_arrays()["about"].item())["sources"])


def test_words_that_often_follow_a_question_are_told_from_others() -> None:
    def follows(message: str) -> float:
        held = word_vectors()
        return float(held.of_answer("Sure. For how many people?")[:-1] @ held.of_message(message)[:-2])

    assert follows("For 4 people, please") > follows("What is the capital of Peru?")


def test_a_word_that_was_not_learned_counts_for_nothing() -> None:
    held = word_vectors()
    assert not held.of_message("xyzzy plugh").any()
    assert held.of_message("hello xyzzy").tolist() == held.of_message("hello").tolist()


def test_a_long_answer_is_read_at_its_end_and_a_long_message_at_its_beginning() -> None:
    held = word_vectors()
    assert held.of_answer("noise " * 500 + "x " * 200 + "which city?").tolist() == (
        held.of_answer("x " * 200 + "which city?").tolist()
    )
    assert held.of_message("which city? " + "x " * 200 + "noise " * 500).tolist() == (
        held.of_message("which city? " + "x " * 200).tolist()
    )


def test_a_long_message_is_heard_at_its_beginning() -> None:
    said = heard(f"Which fugues did Bach write? {'Many of all kinds and lengths. ' * 4} And is it so?")
    assert (said["asking"], said["reference"]) == (1.0, 0.0)
    assert heard("And is it so?")["reference"] == 1.0


def test_words_that_few_dialogs_hold_are_more_telling() -> None:
    held = word_vectors()
    book, unknown = held.rarities(["book", "xyzzy"])
    assert book < unknown == RAREST


def test_a_word_shared_with_a_long_answer_counts_for_less() -> None:
    def shared(answer: str) -> float:
        turns = [TurnEnd(2, None, "Tell me about sailing", answer)]
        rows = describe(turns, no_vectors(1), no_vectors(1), "Is the keel heavy?", None, reader()).rows
        return column(rows, "thread_words")[0]

    filler = " ".join(f"word{i}" for i in range(200))
    assert 0.0 < shared(f"The keel of {filler}") < shared("The keel keeps a boat upright")


def test_how_often_somebody_switches_is_read_from_the_latest_turns() -> None:
    stays, opens = habits([[], [(0, 1.0)], [(1, 1.0)]])
    switching, opening = habits([[], [], []])
    assert stays > USUALLY_STAYS > switching
    assert opening > USUALLY_OPENS > opens


def odds(turns: list[TurnEnd]) -> tuple[float, float]:
    """The difference between the odds of a first turn and of a new root and those of the networks."""
    none, held = no_vectors(len(turns)), networks("words")
    found = describe(turns, none, none, "Which one is that?", None, reader())
    learned, probabilities = np.exp(score(held, found.rows)), weigh(held, found, turns)
    weighed = np.array([probabilities[id_] for id_ in found.ids])
    less = (weighed / weighed[-2]) / (learned / learned[-2])
    return float(less[0]), float(less[-1])


def test_in_the_only_thread_going_back_and_another_subject_are_less_likely_than_learned() -> None:
    follow = [TurnEnd(2 * n, 2 * n - 2, LATER[n - 4], "At the gate.") for n in range(4, 8)]
    back, another = odds([CSV, WINE._replace(previous=2), RUN._replace(previous=4)])
    later = odds([CSV, WINE._replace(previous=2), RUN._replace(previous=4), *follow])
    assert [back, later[0]] == pytest.approx([GOES_BACK, GOES_BACK])
    assert later[1] < another < 1
    assert odds(TURNS) == pytest.approx((1, 1))


def test_networks_for_dialogs_of_their_own_kind_are_listened_to_where_the_conversation_is_familiar() -> None:
    held = networks("local")
    rows = np.random.default_rng(1).normal(size=(4, len(FEATURES)))
    each = held.scores(rows)
    home, elsewhere = (each[held.at_home == kind].mean(0) for kind in (1, 0))
    assert score(held, rows, 0.0) == pytest.approx(elsewhere)
    assert score(held, rows, 1.0) == pytest.approx(MOST_AT_HOME * home + (1 - MOST_AT_HOME) * elsewhere)
    assert score(held, rows) == pytest.approx((home + elsewhere) / 2)


def test_a_conversation_near_what_was_learned_on_is_familiar() -> None:
    learned = compatibility()
    none = np.zeros((1, 384), np.float32)

    def familiar(vector: Floats) -> float:
        told = describe([CSV], none, none, "And then?", vector, reader(), learned).familiar
        assert told is not None
        return told

    assert familiar(learned.centers[0]) > familiar(unit(-learned.centers.mean(0)))
    assert describe([CSV], none, none, "And then?", none[0], reader()).familiar is None


def test_a_message_that_says_much_that_no_thread_knows_is_strange_to_all() -> None:
    def strange(message: str) -> float:
        rows = describe(TURNS, no_vectors(3), no_vectors(3), message, None, reader()).rows
        return column(rows, "root_strange")[-1]

    assert strange("Which museum in Florence shows paintings by Botticelli?") > strange("Yes, two please")
