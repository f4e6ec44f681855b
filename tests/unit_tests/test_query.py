"""`query`: short-term memory, long-term memory and external collections, by the decisions R23 to R35."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import chromadb
import numpy as np
import pytest
from conftest import StreamCipher, WordEmbeddings
from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import MemorySystem, MemoryUnit
from langchain_threadmem.errors import InputError, SessionNotFoundError
from langchain_threadmem.long_term.query import linked

Wrap = Callable[[Any], Any]
ANY = (None, None)
START = datetime(2026, 1, 1, tzinfo=UTC)
SAID = [
    ("user", "How do I bake rye bread?"),
    ("ai", "Rye bread needs sourdough."),
    ("user", "How warm is the cellar?"),
    ("ai", "The cellar has twelve degrees."),
    ("user", "Which tea calms?"),
    ("ai", "Camomile tea calms."),
]


@pytest.fixture
def memory(system: MemorySystem) -> MemorySystem:
    system.start_session("kitchen")
    for number, (source, text) in enumerate(SAID):
        system.add_memory(
            text, source=source, creation_time=START + timedelta(minutes=number), metadata={"number": number}
        )
    return system


def texts(chains: list[list[MemoryUnit]]) -> list[list[str]]:
    return [[unit.content for unit in chain] for chain in chains]


def vector_of(text: str) -> list[float]:
    return WordEmbeddings().embed_query(text)


def test_a_vector_finds_what_is_near_it(memory: MemorySystem, verbs: Wrap) -> None:
    vector = vector_of("Camomile tea calms.")
    found = verbs(memory).query(query_vector=vector, k_limit=1, recall_context=False)
    assert texts(found) == [["Camomile tea calms."]]
    assert found[0][0].group_id == "kitchen"


def test_text_is_embedded(memory: MemorySystem, verbs: Wrap) -> None:
    found = verbs(memory).query("Camomile tea calms", k_limit=1, recall_context=False)
    assert texts(found) == [["Camomile tea calms."]]


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize(
    "text", ["rye bread", "What did Ada say of the kites?", "warm cellars in 2026", "tea that calms", "zebra"]
)
def test_text_is_ranked_as_recall_ranks_it(
    url: str, owner: str, verbs: Wrap, text: str, embedded: bool
) -> None:
    embeddings: Any = WordEmbeddings() if embedded else False
    with MemorySystem(url, owner=owner, embeddings=embeddings) as system:
        system.conversation("kites").extend(
            [HumanMessage("The kite flew.", name="Ada"), AIMessage("The kite tore.", name="Ben")]
        )
        system.conversation("kitchen").extend([(source, said) for source, said in SAID])
        recalled = system.conversation("elsewhere").recall(text, 5, scope="owner")
        found = verbs(system).query(text, k_limit=5, recall_context=False)
        ids = [chain[0].id for chain in found]
        assert ids == [hit.node.message.id for hit in recalled]
        kitchen = verbs(system).query(
            text, k_limit=5, search_range=ANY, recall_context=False, filters={"group_id": "kitchen"}
        )
        passing = [chain[0].id for chain in kitchen]
        # Where no word is shared, how near a text comes is compared with the others that are candidates.
        if text != "zebra":
            assert [id for id in passing if id in ids] == [id for id in ids if id in passing]


def test_r30_k_limit_counts_core_hits(memory: MemorySystem, verbs: Wrap) -> None:
    chains = verbs(memory).query("rye bread tea", k_limit=2, search_range=ANY)
    assert sum(
        unit.content in ("Rye bread needs sourdough.", "Which tea calms?") for c in chains for unit in c
    )
    alone = verbs(memory).query("rye bread tea", k_limit=2, search_range=ANY, recall_context=False)
    assert len(alone) == 2
    assert len(verbs(memory).query("bread", k_limit=5, search_range=ANY, compat_k=True)) == 1
    assert verbs(memory).query("bread", k_limit=0) == []


def test_c11_hits_in_a_row_are_one_chain_between_their_neighbours(memory: MemorySystem, verbs: Wrap) -> None:
    chains = verbs(memory).query("cellar", k_limit=2, search_range=(0.1, None))
    assert texts(chains) == [[text for _, text in SAID[1:5]]]
    assert [unit.metadata["number"] for unit in chains[0]] == [1, 2, 3, 4]


def test_a_neighbour_stands_in_one_chain_only(memory: MemorySystem, verbs: Wrap) -> None:
    wanted = {"metadata.number": {"$in": [0, 2]}}
    chains = verbs(memory).query("how do I", filters=wanted, search_range=ANY)
    shown = [unit.id for chain in chains for unit in chain]
    assert len(chains) == 2
    assert len(shown) == len(set(shown)) == 4


def test_r31_the_search_range_bounds_the_cosine(memory: MemorySystem, verbs: Wrap) -> None:
    assert verbs(memory).query("tea", search_range=(0.75, None)) == []  # It is some 0.6.
    assert len(verbs(memory).query("tea", search_range=(0.4, None), recall_context=False)) == 2
    assert verbs(memory).query(
        "Camomile tea calms.", search_range=(None, 0.9), k_limit=99, recall_context=False
    )
    upper = verbs(memory).query("Camomile tea calms.", search_range=(None, 0.9), recall_context=False)
    assert "Camomile tea calms." not in [chain[0].content for chain in upper]


def test_r31_the_settings_may_bound_the_cosine(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(
        url, owner=owner, embeddings=WordEmbeddings(), settings={"search_range": [0.75]}
    ) as system:
        system.add_memory("Camomile tea calms.", source="user")
        assert verbs(system).query("tea") == []
        assert verbs(system).query("tea", search_range=(None, None)) != []


def test_r31_without_embeddings_words_are_compared(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        for source, text in SAID:
            system.add_memory(text, source=source)
        chains = verbs(system).query("camomile", recall_context=False)
        assert texts(chains) == [["Camomile tea calms."]]
        assert verbs(system).query("zebra") == []
        system.enable_stm(restore_session_id="LATEST")
        assert texts(verbs(system).query("camomile", short_term_only=True, recall_context=False)) == texts(
            chains
        )


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ([("source", "==", "ai")], [1, 3, 5]),
        ({"source": {"$eq": "ai"}, "metadata.number": {"$gt": 1}}, [3, 5]),
        ({"content": {"$contains": "bread"}}, [0, 1]),
        ({"creation_time": {"$lt": START + timedelta(seconds=90)}}, [0, 1]),
        ({"$or": [{"metadata.number": 0}, {"$not": {"source": "user"}}]}, [0, 1, 3, 5]),
        ({"rank": {"$gte": 1}}, []),
        ({"group_id": "another"}, []),
    ],
)
@pytest.mark.parametrize("short", [False, True])
def test_filters_come_before_the_number_of_hits(
    memory: MemorySystem, verbs: Wrap, filters: Any, numbers: list[int], short: bool
) -> None:
    if short:
        memory.enable_stm(restore_session_id="kitchen")
    found = verbs(memory).query(
        "rye cellar tea",
        filters=filters,
        search_range=ANY,
        k_limit=max(len(numbers), 1),
        recall_context=False,
        short_term_only=short,
    )
    assert sorted(chain[0].metadata["number"] for chain in found) == numbers


@pytest.mark.parametrize(
    "filters",
    [
        {"x') OR '1'='1": 1},
        {"metadata": 1},
        {"content": {"$where": "1=1"}},
        [("source", "is", "ai")],
        {"rank": "one"},
        "source == 'ai'",
    ],
)
def test_a_filter_that_means_nothing_shows_nothing(memory: MemorySystem, verbs: Wrap, filters: Any) -> None:
    with pytest.raises(InputError):
        verbs(memory).query("bread", filters=filters, search_range=ANY)


def test_hostile_keys_of_metadata_match_nothing(memory: MemorySystem, verbs: Wrap) -> None:
    for key in ("x') OR '1'='1", "$..", 'a"b', "%", "\ud800"):
        path = f"metadata['{key}']" if "'" not in key else f'metadata["{key}"]'
        assert verbs(memory).query("bread", filters={path: "1"}, search_range=ANY) == []


@pytest.mark.parametrize(
    "options",
    [
        {"short_term_only": True, "long_term_only": True},
        {"short_term_only": True, "external_only": True},
        {"long_term_only": True, "external_only": True},
        {"short_term_only": True},
        {"external_only": True},
        {"k_limit": -1},
        {"k_limit": 2.5},
        {"search_range": (0.9, 0.1)},
        {"search_range": "0.5"},
        {"search_range": (0.5,)},
        {"search_range": (float("nan"), None)},
        {"threshold_for_stm_before_ltm": "high"},
        {"threshold_for_stm_before_ltm": float("nan")},
        {"query_vector": []},
        {"query_vector": [0.0, 0.0]},
        {"query_vector": [1.0, float("nan")]},
        {"query_vector": ["a"]},
    ],
)
def test_case_59_what_contradicts_itself_is_refused(memory: MemorySystem, verbs: Wrap, options: Any) -> None:
    with pytest.raises(ValueError):
        verbs(memory).query("bread", **options)


def test_a_query_without_a_question_is_refused(memory: MemorySystem, verbs: Wrap) -> None:
    with pytest.raises(InputError, match="query_vector"):
        verbs(memory).query()
    memory.enable_stm(restore_session_id="LATEST")
    with pytest.raises(InputError, match="3 dimensions"):
        verbs(memory).query(query_vector=[1.0, 2.0, 3.0], short_term_only=True)


@pytest.mark.parametrize("filters", [None, {"source": "user"}], ids=["all", "some"])
def test_a_vector_of_another_model_is_refused(memory: MemorySystem, verbs: Wrap, filters: Any) -> None:
    with pytest.raises(InputError, match=r"3 dimensions, the stored vectors have 64"):
        verbs(memory).query(query_vector=[1.0, 2.0, 3.0], filters=filters)


def test_a_vector_is_refused_where_there_are_no_vectors(verbs: Wrap) -> None:
    with MemorySystem(embeddings=False) as system:
        system.add_memory("heron")
        with pytest.raises(InputError, match="no embedding model"):
            verbs(system).query(query_vector=[1.0, 0.0])


def test_r29_similar_hits_in_short_term_memory_come_first_and_long_term_memory_fills_up(
    memory: MemorySystem, verbs: Wrap
) -> None:
    system = verbs(memory)
    memory.enable_stm(capacity=1, restore_session_id="kitchen")
    found = system.query(
        "Camomile tea calms.", k_limit=3, search_range=ANY, recall_context=False, add_ltm_to_stm=False
    )
    assert found[0][0].content == "Camomile tea calms."
    assert len({chain[0].id for chain in found}) == 3
    short = system.query("rye bread", search_range=ANY, short_term_only=True, recall_context=False)
    assert texts(short) == [["Camomile tea calms."]]


def test_hits_elsewhere_enter_short_term_memory(memory: MemorySystem, verbs: Wrap) -> None:
    system = verbs(memory)
    memory.enable_stm(capacity=2)
    assert system.query("rye bread", short_term_only=True, search_range=ANY) == []
    system.query("The cellar has twelve degrees.", k_limit=1, add_ltm_to_stm=False)
    assert system.query("cellar", short_term_only=True, search_range=ANY) == []
    system.query("The cellar has twelve degrees.", k_limit=1)
    found = system.query("cellar", short_term_only=True, search_range=ANY, recall_context=False)
    assert texts(found) == [["The cellar has twelve degrees."]]


def test_what_is_added_enters_short_term_memory(memory: MemorySystem, verbs: Wrap) -> None:
    system = verbs(memory)
    system.enable_stm(capacity=3)
    for number in range(5):
        system.add_memory(f"fact {number}")
    found = system.query("fact", short_term_only=True, search_range=ANY, recall_context=False)
    assert sorted(texts(found)) == [["fact 2"], ["fact 3"], ["fact 4"]]
    system.disable_stm()
    with pytest.raises(InputError, match="enable_stm"):
        system.query("fact", short_term_only=True)


def test_short_term_memory_is_restored_from_a_session(memory: MemorySystem, verbs: Wrap) -> None:
    system = verbs(memory)
    system.enable_stm(capacity=2, restore_session_id="kitchen")
    found = system.query("tea", short_term_only=True, search_range=ANY, recall_context=False)
    assert sorted(texts(found)) == [["Camomile tea calms."], ["Which tea calms?"]]
    with pytest.raises(SessionNotFoundError):
        system.enable_stm(restore_session_id="nowhere")
    with pytest.raises(InputError, match="capacity"):
        system.enable_stm(capacity=0)


def test_short_term_memory_shows_nothing_that_is_gone(memory: MemorySystem, verbs: Wrap) -> None:
    system = verbs(memory)
    memory.enable_stm(restore_session_id="kitchen")
    conversation = memory.conversation("kitchen")
    conversation.edit(6, "Camomile tea wakes.")
    found = system.query("camomile", short_term_only=True, search_range=ANY, recall_context=False)
    assert "Camomile tea calms." not in [chain[0].content for chain in found]
    conversation.reset()
    assert system.query("camomile", short_term_only=True, search_range=ANY) == []


def test_r23_r24_a_hit_counts_a_visit_and_refreshes_the_summaries_above(
    memory: MemorySystem, verbs: Wrap
) -> None:
    system = verbs(memory)
    root = memory.summarize_session("kitchen")
    assert root is not None
    only = {"metadata.number": 5}
    for _ in range(2):
        system.query("tea", filters=only, search_range=ANY)
    [unit] = [found for found in system.get_context() if found.content == "Camomile tea calms."]
    assert (unit.visit_count, unit.last_visit) == (2, 2)
    root = system.unit("kitchen")
    assert (root.visit_count, root.last_visit) == (0, 2)
    neighbour = system.get_context()[-2]
    assert (neighbour.visit_count, neighbour.last_visit) == (0, 0)
    [[shown]] = system.query("tea", filters=only, search_range=ANY, recall_context=False)
    assert (shown.visit_count, shown.last_visit) == (3, 3)


def test_visits_are_not_lost_when_the_memory_is_closed(url: str, owner: str, verbs: Wrap) -> None:
    options: dict[str, Any] = {"owner": owner, "embeddings": False}
    with MemorySystem(url, **options) as system:
        system.start_session("s")
        unit = system.add_memory("heron")
        system.query("heron")
        system.query("heron")
    with MemorySystem(url, **options) as again:
        found = verbs(again).unit(unit.id)
        assert (found.visit_count, found.last_visit) == (2, 2)
        assert verbs(again).query("heron")[0][0].last_visit == 3


def test_visits_are_written_as_often_as_the_settings_say(url: str, owner: str) -> None:
    def stored() -> list[int]:
        with MemorySystem(url, owner=owner, embeddings=False) as other:
            return [unit.visit_count for unit in other.query("heron", recall_context=False)[0]]

    settings = {"visit_update_interval": 2}
    with MemorySystem(url, owner=owner, embeddings=False, settings=settings) as system:
        for name in ("one", "two"):
            system.add_memory(f"heron {name}")
        system.query("one", recall_context=False)
        system.query("two", recall_context=False)
        assert stored() == [2]


def test_summaries_are_found_like_messages(memory: MemorySystem, verbs: Wrap) -> None:
    memory.summarize_session("kitchen")
    [[found]] = verbs(memory).query(
        "sourdough cellar camomile", filters={"rank": 1}, search_range=ANY, k_limit=1, recall_context=False
    )
    assert (found.id, found.rank) == ("kitchen", 1)


def test_another_owner_is_never_shown(memory: MemorySystem, url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=f"{owner}x", embeddings=WordEmbeddings()) as other:
        other.enable_stm()
        for options in ({}, {"query_vector": vector_of("rye bread")}, {"filters": {"group_id": "kitchen"}}):
            assert verbs(other).query("rye bread", search_range=ANY, **options) == []


class Watched:
    """A Chroma collection that may only be read."""

    def __init__(self, collection: Any) -> None:
        self.inner = collection

    def __getattr__(self, name: str) -> Any:
        assert name in ("query", "get", "count", "name"), f"{name} is no reading"
        return getattr(self.inner, name)


@pytest.fixture
def library(request: pytest.FixtureRequest) -> Any:
    client = chromadb.EphemeralClient()
    name = f"library-{abs(hash(request.node.name))}"
    collection = client.create_collection(name, embedding_function=None)
    shelf = ["Rye grows on poor soil.", "Tea grows in the hills.", "Rye feeds the north."]
    collection.add(
        ids=["r1", "t1", "r2"],
        documents=shelf,
        embeddings=[vector_of(text) for text in shelf],
        metadatas=[
            {"source": "book", "next_id": "t1", "creation_time": START.timestamp()},
            {"source": "book", "pre_id": "r1", "page": 7},
            {"rank": 1},
        ],
    )
    yield collection
    client.delete_collection(name)


def test_r35_external_collections_are_read_and_their_hits_are_marked(
    memory: MemorySystem, verbs: Wrap, library: Any
) -> None:
    before = library.get(include=["documents", "metadatas", "embeddings"])
    memory.connect_external(Watched(library))
    system = verbs(memory)
    found = system.query("rye grows", search_range=(0.3, None), external_only=True, recall_context=False)
    assert texts(found)[0] == ["Rye grows on poor soil."]
    [unit] = found[0]
    assert (unit.source, unit.group_id, unit.creation_time) == ("book", library.name, START)
    assert unit.metadata["external"] == library.name
    assert unit.visit_count == unit.last_visit == 0
    chains = system.query("rye grows", filters={"id": "r1"}, search_range=ANY, external_only=True)
    assert texts(chains) == [["Rye grows on poor soil.", "Tea grows in the hills."]]
    after = library.get(include=["documents", "metadatas", "embeddings"])
    assert (after["ids"], after["documents"], after["metadatas"]) == (
        before["ids"],
        before["documents"],
        before["metadatas"],
    )
    assert np.array_equal(after["embeddings"], before["embeddings"])


@pytest.mark.parametrize(("first", "sources"), [(True, ["external", "own"]), (False, ["own", "external"])])
def test_external_hits_come_first_or_last(
    memory: MemorySystem, verbs: Wrap, library: Any, first: bool, sources: list[str]
) -> None:
    memory.connect_external(library)
    found = verbs(memory).query(
        "rye", k_limit=20, search_range=ANY, query_external_first=first, recall_context=False
    )
    kinds = ["external" if "external" in chain[0].metadata else "own" for chain in found]
    assert list(dict.fromkeys(kinds)) == sources
    assert len(found) == 9


def test_r35_an_external_hit_in_short_term_memory_stays_marked_and_counts_no_visit(
    memory: MemorySystem, verbs: Wrap, library: Any
) -> None:
    memory.connect_external(library)
    memory.enable_stm()
    system = verbs(memory)
    system.query("Tea grows in the hills.", external_only=True, k_limit=1)
    found = system.query("Tea grows in the hills.", short_term_only=True, recall_context=False)
    assert texts(found) == [["Tea grows in the hills."]]
    assert found[0][0].metadata["external"] == library.name
    assert found[0][0].visit_count == 0
    mixed = system.query("Tea grows in the hills.", recall_context=False)
    assert texts(mixed).count(["Tea grows in the hills."]) == 1


def test_an_external_collection_without_embeddings_is_searched_by_words(
    url: str, owner: str, verbs: Wrap, library: Any
) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.connect_external(library)
        found = verbs(system).query("hills", external_only=True, recall_context=False)
        assert texts(found) == [["Tea grows in the hills."]]
        system.disconnect_external()
        with pytest.raises(InputError, match="connect_external"):
            verbs(system).query("hills", external_only=True)


def test_an_external_collection_of_another_shape_is_refused_or_read(
    memory: MemorySystem, verbs: Wrap, library: Any
) -> None:
    client = chromadb.EphemeralClient()
    name = f"bare-{library.name}"
    bare = client.create_collection(name, embedding_function=None)
    try:
        bare.add(ids=["v1"], embeddings=[vector_of("tea")])
        memory.connect_external(bare)
        [[unit]] = verbs(memory).query("tea", external_only=True)
        assert (unit.id, unit.content, unit.source) == ("v1", "", "external")
        memory.disconnect_external()
        with pytest.raises(InputError, match="not a Chroma collection"):
            memory.connect_external(object())  # type: ignore[arg-type]
        short = client.create_collection(f"short-{library.name}", embedding_function=None)
        short.add(ids=["v1"], embeddings=[[1.0, 2.0]])
        memory.connect_external(short)
        with pytest.raises(InputError, match="does not fit"):
            verbs(memory).query("tea", external_only=True)
    finally:
        client.delete_collection(name)


def test_an_encrypted_memory_is_queried_at_hand_only(url: str, owner: str, verbs: Wrap) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings(), cipher=StreamCipher()) as system:
        system.enable_stm()
        system.add_memory("The heron stands in the reeds.")
        found = verbs(system).query("heron", short_term_only=True, search_range=ANY)
        assert texts(found) == [["The heron stands in the reeds."]]
        with pytest.raises(InputError, match="encrypted"):
            verbs(system).query("heron")


def test_a_filter_that_leaves_few_units_finds_them_however_many_others_there_are(
    url: str, owner: str, verbs: Wrap
) -> None:
    with MemorySystem(url, owner=owner, embeddings=WordEmbeddings()) as system:
        system.start_session("old")
        system.add_memory("the first bread of all", metadata={"first": True})
        system.conversation("crowd").extend([f"bread number {number}" for number in range(300)])
        system.conversation("corner").extend(["a heron", "bread in the corner"])
        found = verbs(system).query(
            "bread", filters={"group_id": "corner"}, search_range=ANY, k_limit=2, recall_context=False
        )
        assert texts(found) == [["bread in the corner"], ["a heron"]]
        number = {"content": {"$like": "% 299"}}
        first = verbs(system).query(
            "bread", filters={"metadata.first": True}, search_range=ANY, recall_context=False
        )
        assert texts(first) == [["the first bread of all"]]
        [[last]] = verbs(system).query(
            "bread", filters=number, search_range=ANY, k_limit=1, recall_context=False
        )
        assert last.content == "bread number 299"


def test_words_are_looked_for_beyond_the_newest_where_a_filter_asks_for_it(url: str, owner: str) -> None:
    with MemorySystem(url, owner=owner, embeddings=False) as system:
        system.start_session("old")
        system.add_memory("the first bread of all", metadata={"first": True})
        system.conversation("crowd").extend([f"bread number {number}" for number in range(900)])
        [[found]] = system.query("bread", filters={"metadata.first": True}, recall_context=False)
        assert found.content == "the first bread of all"
        assert system.query("bread", filters={"metadata.first": False}) == []


@pytest.mark.parametrize("embedded", [True, False])
def test_a_read_only_memory_is_queried(url: str, owner: str, verbs: Wrap, embedded: bool) -> None:
    embeddings: Any = WordEmbeddings() if embedded else False
    with MemorySystem(url, owner=owner, embeddings=embeddings) as system:
        system.add_memory("Rye bread needs sourdough.")
        system.query("bread")
        system.add_memory("White bread needs yeast.")
    with MemorySystem(url, owner=owner, embeddings=embeddings, read_only=True) as system:
        for _ in range(3):
            found = verbs(system).query("bread", filters={"visit_count": 1}, recall_context=False)
            assert texts(found) == [["Rye bread needs sourdough."]]


@pytest.mark.parametrize(
    ("links", "chains"),
    [
        ({"b": ("a", None), "a": (None, None)}, [["a", "b"]]),
        ({"a": (None, "b"), "b": (None, None)}, [["a", "b"]]),
        ({"a": (None, "c"), "b": (None, "c"), "c": ("a", None)}, [["a", "c"], ["b"]]),
        ({"b": ("a", "a"), "a": ("b", "b")}, [["a", "b"]]),
    ],
    ids=["only back", "only on", "two before one", "a circle"],
)
def test_each_hit_is_in_one_chain_even_if_the_links_of_an_external_collection_disagree(
    links: dict[str, tuple[str | None, str | None]], chains: list[list[str]]
) -> None:
    units = [MemoryUnit(id, "", pre_id=before, next_id=after) for id, (before, after) in links.items()]
    assert [[unit.id for unit in chain] for chain in linked(units)] == chains
