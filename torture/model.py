"""Random verbs on a conversation and on plain dictionaries, which must agree."""

from __future__ import annotations

import random
from uuid import uuid4

from langchain_core.messages import AIMessage, HumanMessage

from langchain_threadmem import ChatMemory, MemorySystem
from torture.children import Child, Report
from torture.databases import Place
from torture.tally import Tally, rounds

STEPS = 25
"""The number of verbs of one conversation."""
VERBS = (
    *("append", "extend", "repeat", "checkout", "edit", "regenerate", "place"),
    *("recall", "reopen", "reset"),
)


class Model:
    """A conversation, and dictionaries of the parents, roles and texts of its messages.

    Each verb takes two numbers, which choose the message, its new parent or a count.

    Args:
        url: The URL of the database; `None` for one in memory, which is not opened again.
    """

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._owner = f"machine-{uuid4()}"
        self._open()
        self._begin()
        self._said = 0

    def _open(self) -> None:
        self.system = MemorySystem(self._url, owner=self._owner, embeddings=False)
        self.memory: ChatMemory = self.system.conversation("c")

    def _begin(self) -> None:
        self.parents: dict[int, int | None] = {}
        self.roles: dict[int, str] = {}
        self.texts: dict[int, str] = {}
        self.dead: dict[int, int] = {}  # superseded nodes, and the nodes that superseded them
        self.moved: set[int] = set()  # former places
        self.tip: int | None = None

    def step(self, verb: str, first: int, second: int | None) -> None:
        """Run a verb on both, and compare them."""
        getattr(self, verb)(first, second)
        self.compare()

    def compare(self) -> None:
        history = self.memory.history
        assert {node.id: node.parent_id for node in history} == self.parents
        assert {node.id: node.superseded_by for node in history if node.state} == self.dead
        assert {node.id: node.message.content for node in history} == self.texts
        assert (self.memory.tip.id if self.memory.tip else None) == self.tip
        if self.tip is not None:
            assert [node.id for node in self.memory.thread(self.tip)] == self._path(self.tip)

    def close(self) -> None:
        assert self.memory.verify().problems == ()
        self.system.close()

    # The verbs

    def append(self, first: int, second: int | None) -> None:
        roles = ["human", *["ai"] * (first % 3)]
        texts = self._texts(len(roles))
        assert self.memory.append(*texts)[0].id == self._grow(self.tip, roles, texts)

    def extend(self, first: int, second: int | None) -> None:
        roles = ["human", "ai", "human", "ai"][: first % 4 + 1]
        texts = self._texts(len(roles))
        self.memory.extend(zip(roles, texts, strict=True))
        self._grow(self.tip, roles, texts)

    def repeat(self, first: int, second: int | None) -> None:
        """The same turn twice."""
        texts = self._texts(2)
        turn = HumanMessage(texts[0], id=texts[0]), AIMessage(texts[1], id=texts[1])
        nodes = self.memory.append(*turn)
        assert nodes[0].id == self._grow(self.tip, ["human", "ai"], texts)
        assert self.memory.append(*turn) == nodes

    def checkout(self, first: int, second: int | None) -> None:
        if self.parents:
            self.tip = self._node(first)
            self.memory.checkout(self.tip)

    def edit(self, first: int, second: int | None) -> None:
        if not self.parents:
            return
        asked = old = self._node(first)
        passed = []
        while old in self.dead and self.roles[self.dead[old]] == self.roles[old]:
            passed.append(old)
            old = self.dead[old]
        gone = self._turn(old)
        texts = self._texts(1)
        new = self._grow(self.parents[old], [self.roles[old]], texts)
        assert self.memory.edit(asked, texts[0]).id == new
        self._supersede(gone, new)
        self.dead.update(dict.fromkeys(passed, new))
        self.moved.difference_update(passed)

    def regenerate(self, first: int, second: int | None) -> None:
        if not self.parents:
            return
        chosen = self._node(first)
        asked: int | None = self._place_of(chosen)
        while asked is not None and self.roles[asked] != "human":
            above = self.parents[asked]
            asked = None if above is None else self._place_of(above)
        if asked is None:
            return
        gone = self._turn(asked)[1:]
        texts = self._texts(1)
        new = self._grow(asked, ["ai"], texts)
        assert self.memory.regenerate(chosen, texts[0])[0].id == new
        self._supersede(gone, new)

    def place(self, first: int, second: int | None) -> None:
        if not self.parents:
            return
        old, parent = self._node(first), None if second is None else self._node(second)
        following = [n for n in self.parents if self.parents[n] == old and n not in self.moved]
        if old in self.dead or parent == self.parents[old] or {old, *following} & {*self._path(parent)}:
            return
        tip, new = self.tip, self._grow(parent, [self.roles[old]], [self.texts[old]])
        self.parents.update(dict.fromkeys(following, new))
        self.dead[old] = new
        self.moved.add(old)
        self.tip = new if tip == old else tip
        assert self.memory.place(old, parent).id == new

    def recall(self, first: int, second: int | None) -> None:
        """Recall finds a live message by its own word, and no superseded one."""
        if not self.parents:
            return
        node = self._node(first)
        found = {hit.node.id for hit in self.memory.recall(self.texts[node], n_results=5)}
        assert (node in found) == (node not in self.dead)
        assert not found & set(self.dead)

    def reopen(self, first: int, second: int | None) -> None:
        if self._url is not None:
            self.system.close()
            self._open()

    def reset(self, first: int, second: int | None) -> None:
        if first % 4 == 0:  # Else conversations would stay short.
            self.memory.reset()
            self._begin()

    # The dictionaries

    def _texts(self, count: int) -> list[str]:
        """New words."""
        self._said += count
        return [f"word{self._said - n}" for n in range(count)]

    def _grow(self, parent: int | None, roles: list[str], texts: list[str]) -> int:
        """Add a chain; the id of its first node."""
        first = len(self.parents) + 1
        for n, (role, text) in enumerate(zip(roles, texts, strict=True), first):
            self.parents[n], self.roles[n], self.texts[n] = parent, role, text
            parent = n
        self.tip = parent
        return first

    def _node(self, n: int) -> int:
        return n % len(self.parents) + 1

    def _turn(self, start: int) -> list[int]:
        """A node and the answers below it, on all branches."""
        inside = [start]
        for above in inside:
            inside += [n for n in self.parents if self.parents[n] == above and self.roles[n] != "human"]
        return inside

    def _supersede(self, nodes: list[int], by: int) -> None:
        self.dead.update((node, by) for node in nodes if node not in self.dead)

    def _place_of(self, node: int) -> int:
        """The present place of a message."""
        while node in self.moved:
            node = self.dead[node]
        return node

    def _path(self, node: int | None) -> list[int]:
        """The nodes from the root to a node."""
        found = []
        while node is not None:
            found.append(node)
            node = self.parents[node]
        return found[::-1]


def fuzz(place: Place, tally: Tally, seconds: float, random_: random.Random) -> None:
    """Random verbs until the time is over; each verb that agrees counts as acknowledged."""
    for _ in rounds(seconds):
        url, choices = place.new(), random.Random(random_.getrandbits(64))

        def walk(report: Report, url: str = url, choices: random.Random = choices) -> None:
            model, walked = Model(url), []
            try:
                for _ in range(STEPS):
                    second = choices.choice([None, choices.randrange(1000)])
                    walked.append((choices.choice(VERBS), choices.randrange(1000), second))
                    model.step(*walked[-1])
                    report("done")
                model.close()
            except AssertionError as error:
                report("problem", "lost", f"after {walked} {error}"[-900:])

        for word, *values in Child(walk).end():
            if word == "problem":
                tally.add(values[0], example=values[1])
            else:
                tally.add("acknowledged")
        tally.add("runs")
        place.drop(url)
