"""The verbs of `MemorySystem` about what is found again, and what is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from langchain_threadmem.core.filters import FieldFilter
from langchain_threadmem.core.forgetting import Scorer
from langchain_threadmem.core.short_term import Range
from langchain_threadmem.core.units import MemoryUnit
from langchain_threadmem.flows import erase, forget, query
from langchain_threadmem.flows.erase import Receipt, Scrubbed
from langchain_threadmem.flows.forget import Forgotten
from langchain_threadmem.flows.query import Question
from langchain_threadmem.flows.runtime import Runtime
from langchain_threadmem.flows.sources import Sources
from langchain_threadmem.flows.steps import Flow, arun, run
from langchain_threadmem.settings import MemorySettings
from langchain_threadmem.storage.external import ExternalCollection

if TYPE_CHECKING:
    import numpy as np
    from chromadb.api.models.Collection import Collection
    from numpy.typing import NDArray


class LongTermVerbs:
    """Short-term memory, queries, external collections, forgetting."""

    runtime: Runtime
    settings: MemorySettings
    _added: int = 0

    def enable_stm(self, capacity: int | None = None, restore_session_id: str | None = None) -> None:
        """Keep the units used last at hand, with their vectors; `query` looks there first.

        Every unit that is added enters, and so does what a query finds elsewhere. If it is enabled already,
        its capacity changes and what fits stays.

        Args:
            capacity: How many units; by default that of the settings (200).
            restore_session_id: A session whose newest units enter at once; "LATEST" for the one in which
                something was said last.

        Raises:
            InputError: The capacity is no whole number from 1 up.
            SessionNotFoundError: There is no such session.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> unit = system.add_memory("The dough rests in the cellar.")
            >>> system.enable_stm(capacity=50, restore_session_id="LATEST")
            >>> system.query("Where is the dough?", short_term_only=True)[0][0].content
            'The dough rests in the cellar.'
        """
        chosen = self.settings.stm_capacity if capacity is None else capacity
        run(query.enable(self.runtime, chosen, restore_session_id), self.runtime)

    async def aenable_stm(self, capacity: int | None = None, restore_session_id: str | None = None) -> None:
        """Async `enable_stm`."""
        chosen = self.settings.stm_capacity if capacity is None else capacity
        await arun(query.enable(self.runtime, chosen, restore_session_id), self.runtime)

    def disable_stm(self) -> None:
        """Let short-term memory go; nothing that was in it is lost."""
        self.runtime.get(Sources).short_term = None

    async def adisable_stm(self) -> None:
        """Async `disable_stm`."""
        self.disable_stm()

    def connect_external(self, collection: Collection) -> None:
        """Let queries look into a Chroma collection too, of whatever shape; it is read and never written.

        Args:
            collection: The collection, best got with `embedding_function=None`: it is always asked with
                vectors of this memory's model, so it has to be made with the same one. One with the name of a
                collection that is connected takes its place.

        Raises:
            InputError: It is no collection.
        """
        fresh = ExternalCollection(collection)
        self.runtime.get(Sources).external = [
            *(other for other in self.runtime.get(Sources).external if other.name != fresh.name),
            fresh,
        ]

    def disconnect_external(self) -> None:
        """Let queries look into no external collection any more."""
        self.runtime.get(Sources).external = []

    def query(
        self,
        text: str | None = None,
        *,
        query_vector: Sequence[float] | NDArray[np.floating] | None = None,
        filters: FieldFilter | None = None,
        k_limit: int | None = None,
        search_range: Range | None = None,
        recall_context: bool | None = None,
        add_ltm_to_stm: bool | None = None,
        query_external_first: bool | None = None,
        short_term_only: bool = False,
        long_term_only: bool = False,
        external_only: bool = False,
        threshold_for_stm_before_ltm: float | None = None,
        compat_k: bool = False,
    ) -> list[list[MemoryUnit]]:
        """Find messages and summaries that fit a question, in all sessions of the owner.

        Hits in short-term memory that are similar enough come first, then those in long-term memory; each
        counts as a visit, which keeps it from being forgotten. Without embeddings, words are compared.

        Args:
            text: What is asked.
            query_vector: The same as a vector of the memory's model; it counts instead of the text.
            filters: Which units count: `{"source": {"$eq": "ai"}}` with `$eq $ne $gt $gte $lt $lte $in $nin
                $contains $like $and $or $not`, or `[("source", "==", "ai"), ...]`, over the fields of
                `MemoryUnit` and the keys of its metadata (`metadata.topic`).
            k_limit: How many hits at most, their neighbours not counted; by default 5.
            search_range: The lowest and highest cosine of a hit, each `None` for no limit; by default
                none, and hits are ranked as `ChatMemory.recall` ranks them. No effect without embeddings.
            recall_context: Whether the messages before and after a hit come with it; by default they do.
            add_ltm_to_stm: Whether hits from elsewhere enter short-term memory; by default they do.
            query_external_first: Whether external hits come before one's own; by default they do.
            short_term_only: Look into short-term memory alone.
            long_term_only: Look into long-term memory alone.
            external_only: Look into external collections alone.
            threshold_for_stm_before_ltm: From which cosine on a hit in short-term memory comes first; by
                default 0.8.
            compat_k: Take a third of `k_limit` where neighbours come along, as MemForest does.

        Returns:
            Chains, the best first: each holds hits that follow each other, between their neighbours. Defaults
            are those of `settings`.

        Raises:
            InputError: Arguments contradict each other, a filter means nothing, a vector has another length.
            EmbeddingError: The text could not be embedded.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> for text in ("What was the code name?", "The code name was Heron.", "Thank you!"):
            ...     unit = system.add_memory(text, source="ai" if "was Heron" in text else "user")
            >>> [[unit.content for unit in chain] for chain in system.query("Heron", recall_context=False)]
            [['The code name was Heron.']]
            >>> [len(chain) for chain in system.query("Heron", filters=[("source", "==", "ai")])]
            [3]
        """
        asked = self._question(
            *(text, query_vector, filters, k_limit, search_range, recall_context, add_ltm_to_stm),
            *(query_external_first, short_term_only, long_term_only, external_only),
            *(threshold_for_stm_before_ltm, compat_k),
        )
        return run(query.query(self.runtime, asked), self.runtime)

    async def aquery(
        self,
        text: str | None = None,
        *,
        query_vector: Sequence[float] | NDArray[np.floating] | None = None,
        filters: FieldFilter | None = None,
        k_limit: int | None = None,
        search_range: Range | None = None,
        recall_context: bool | None = None,
        add_ltm_to_stm: bool | None = None,
        query_external_first: bool | None = None,
        short_term_only: bool = False,
        long_term_only: bool = False,
        external_only: bool = False,
        threshold_for_stm_before_ltm: float | None = None,
        compat_k: bool = False,
    ) -> list[list[MemoryUnit]]:
        """Async `query`."""
        asked = self._question(
            *(text, query_vector, filters, k_limit, search_range, recall_context, add_ltm_to_stm),
            *(query_external_first, short_term_only, long_term_only, external_only),
            *(threshold_for_stm_before_ltm, compat_k),
        )
        return await arun(query.query(self.runtime, asked), self.runtime)

    def _question(
        self,
        text: str | None,
        query_vector: Sequence[float] | NDArray[np.floating] | None,
        filters: FieldFilter | None,
        k_limit: int | None,
        search_range: Range | None,
        recall_context: bool | None,
        add_ltm_to_stm: bool | None,
        query_external_first: bool | None,
        short_term_only: bool,
        long_term_only: bool,
        external_only: bool,
        threshold: float | None,
        compat_k: bool,
    ) -> Question:
        """What a query was called with, checked, with the settings for what was left out."""
        known = self.settings
        return query.question(
            self.runtime,
            text=text,
            query_vector=query_vector,
            filters=filters,
            k_limit=known.k_limit if k_limit is None else k_limit,
            search_range=known.search_range if search_range is None else search_range,
            recall_context=known.recall_context if recall_context is None else recall_context,
            add_ltm_to_stm=known.add_ltm_to_stm if add_ltm_to_stm is None else add_ltm_to_stm,
            query_external_first=(
                known.query_external_first if query_external_first is None else query_external_first
            ),
            short_term_only=short_term_only,
            long_term_only=long_term_only,
            external_only=external_only,
            threshold=known.stm_threshold if threshold is None else threshold,
            compat_k=compat_k,
            interval=known.visit_update_interval,
        )

    def forget(
        self,
        percentage: float | None = None,
        *,
        max_units: int | None = None,
        until_below: bool = False,
        purge: bool = False,
        scorer: Scorer | None = None,
    ) -> Forgotten:
        """Let the least important units leave memory: they are not found any more, and stay in history.

        Units go in the order of their last visit, then of their number of visits, then of their age. Exempt
        are units added with `never_delete`, summaries while anything is left of what they cover, and the
        topmost summary of a session and of the owner. `add_memory` does the same by itself, one pass at a
        time, when there are more than `settings.max_units`; it looks after every `settings.saving_interval`
        additions. 10,000 of 100,000 units take about half a second.

        Args:
            percentage: Which share of the units that may go does, from 0 to 1, at least one; by default that
                of the settings (0.10).
            max_units: Do so only if the memory holds more units than this.
            until_below: Go on, pass after pass, until it does not; `max_units` is then by default that of the
                settings.
            purge: Remove them for good, from history too; `scrub` clears their bytes from the files.
            scorer: Who says what is important, for example `core.forgetting.decay()` or `centrality()`.

        Returns:
            How many were forgotten, and how many are left.

        Raises:
            InputError: `percentage` is not from 0 to 1.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> units = [system.add_memory(f"fact number {n}") for n in range(25)]
            >>> system.forget(0.1).units, len(system.query("fact", k_limit=99, recall_context=False))
            (2, 23)
        """
        return run(self._forgetting(percentage, max_units, until_below, purge, scorer), self.runtime)

    async def aforget(
        self,
        percentage: float | None = None,
        *,
        max_units: int | None = None,
        until_below: bool = False,
        purge: bool = False,
        scorer: Scorer | None = None,
    ) -> Forgotten:
        """Async `forget`."""
        return await arun(self._forgetting(percentage, max_units, until_below, purge, scorer), self.runtime)

    def _forgetting(
        self,
        percentage: float | None,
        max_units: int | None,
        until_below: bool,
        purge: bool,
        scorer: Scorer | None,
    ) -> Flow[Forgotten]:
        share = self.settings.forget_percentage if percentage is None else percentage
        above = self.settings.max_units if max_units is None and until_below else max_units
        return forget.forget(
            self.runtime, share, above=above, until_below=until_below, purge=purge, scorer=scorer
        )

    def erase(self, *, conversation: str | None = None, before: datetime | None = None) -> Receipt:
        """Erase for good: a conversation, what was said before a time, or everything of the owner.

        Messages go with their words, vectors, checkpoints, and with all summaries that may quote them, those
        of the long-term memory among them; `summarize_long_term_memory` makes new ones of what is left. The
        database file is written anew, which takes about a second for 100 MB and as much free space as the
        file, so that none of its bytes hold what was erased. A Chroma index of the owner is emptied, since it
        keeps the bytes of what is removed: the next search goes through SQL, and begins to fill it again in
        the background (half a millisecond for each vector). Other owners keep everything.

        Args:
            conversation: Only this conversation.
            before: Only what was said before this time (without a zone: UTC), and values of the store that
                were last changed before it. Of a conversation that goes on, what was said later stays.
                Without either, everything of the owner goes, the store too.

        Returns:
            A receipt: how many rows of each table went, what was found to be left (nothing), and which files
            may still hold bytes of it. `check_erased` looks again; `scrub` writes these files anew.

        Raises:
            InputError: `before` is no time, `conversation` no text.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("My number is 555.", "Noted.")
            >>> receipt = system.erase(conversation="monday")
            >>> receipt.messages, receipt.ok, system.conversations()
            (2, True, [])
        """
        return run(erase.erase(self.runtime, conversation, before), self.runtime)

    async def aerase(self, *, conversation: str | None = None, before: datetime | None = None) -> Receipt:
        """Async `erase`."""
        return await arun(erase.erase(self.runtime, conversation, before), self.runtime)

    def scrub(self) -> Scrubbed:
        """Write the files of the memory anew, so that they hold no bytes of what was deleted.

        `reset`, `remove_session`, `forget(purge=True)` and a checkpointer's `delete_thread` remove rows and
        vectors at once, and leave their bytes in the free pages of the database file and in Chroma's files,
        as every deletion of a database does. `erase` scrubs by itself. This takes about a second for 100 MB
        of database, in which nobody else can write, and empties a Chroma index, which is filled again in the
        background.

        Returns:
            Which files may still hold bytes of what was deleted, and why: somebody was reading an older
            state, the disk was full, or a server looks after its files itself.

        Example:
            >>> from langchain_threadmem import MemorySystem
            >>> system = MemorySystem(embeddings=False)
            >>> nodes = system.conversation("monday").append("My number is 555.", "Noted.")
            >>> system.conversation("monday").reset()
            >>> system.scrub().ok
            True
        """
        return run(erase.scrub(self.runtime), self.runtime)

    async def ascrub(self) -> Scrubbed:
        """Async `scrub`."""
        return await arun(erase.scrub(self.runtime), self.runtime)

    def check_erased(self, receipt: Receipt) -> Receipt:
        """A receipt of `erase` with what is there now of what it says is gone; `ok` if that is nothing.

        Raises:
            InputError: It is the receipt of another owner.
        """
        return run(erase.check(self.runtime, receipt), self.runtime)

    async def acheck_erased(self, receipt: Receipt) -> Receipt:
        """Async `check_erased`."""
        return await arun(erase.check(self.runtime, receipt), self.runtime)

    def _kept_small(self, adding: Flow[MemoryUnit]) -> Flow[MemoryUnit]:
        """Add a unit, and let others go if it is time to look and there are too many."""
        unit = yield from adding
        self._added += 1
        if self.settings.max_units and self._added % self.settings.saving_interval == 0:
            yield from forget.when_full(
                self.runtime, self.settings.max_units, self.settings.forget_percentage
            )
        return unit
