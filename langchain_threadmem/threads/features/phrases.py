"""Phrases of a language that show the place of a message in a conversation.

Embeddings represent the subject of a text, not its function: "yes, that one" answers the last question,
"Hello, I need" opens a subject, "enjoy your trip" closes a subject. `Phrases` lists the phrases of one
language, `ENGLISH` is the default, and `cues` searches texts for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property

_PLAIN_WORD = re.compile(r"\w+")


@dataclass(frozen=True, eq=False)
class Phrases:
    """Phrases of one language that show how a message relates to earlier messages.

    All are in lower case, with a plain apostrophe; a phrase matches whole words. An empty tuple disables a
    cue.

    Attributes:
        stop_words: Words too common to distinguish threads.
        endings: Word endings to remove if four letters remain, longest first.
        references: Words that refer to an earlier message, anywhere in a message.
        replies: Beginnings of a reply to the last message.
        connectives: Beginnings of a message that continues the subject.
        greetings: Beginnings of a message that opens a conversation.
        requests: Phrases that open a task or a subject.
        farewells: Phrases with which either side closes a subject.
        agreements: Beginnings of a message that says yes.
        refusals: Beginnings of a message that says no.
        thanks: Phrases of thanks.
        returns: Phrases that return to an earlier subject.
        changes: Phrases that correct an earlier message.
        asking: Beginnings of a question.
        alternatives: Words that choose one of several offers.
        closed: Beginnings of a yes-or-no question.
        confirmations: Phrases of an answer that asks for confirmation.
        completions: Phrases of an answer that reports a completed task.
        offers: Phrases of an answer that offers more help.
        apologies: Phrases of an answer that did not understand or could not help.
        disjunctions: Words of a question that offers a choice.
        numbers: Words of a question that asks for a number.
        amounts: Words that, like digits, give a number.
        times: Words of a question that asks for a time or a date.
        moments: Words that give a time or a date.
        wheres: Words of a question that asks for a place.
        places: Words before the name of a place.
        whos: Words of a question that asks for a name.
        names: Words that introduce a name.
    """

    stop_words: frozenset[str] = frozenset()
    endings: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()
    connectives: tuple[str, ...] = ()
    greetings: tuple[str, ...] = ()
    requests: tuple[str, ...] = ()
    farewells: tuple[str, ...] = ()
    agreements: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    thanks: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    confirmations: tuple[str, ...] = ()
    completions: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    apologies: tuple[str, ...] = ()
    disjunctions: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    amounts: tuple[str, ...] = ()
    times: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
    wheres: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    whos: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @cached_property
    def patterns(self) -> Mapping[str, tuple[frozenset[str], frozenset[str], re.Pattern[str]]]:
        """For each cue: its single words that match anywhere, the first words of its other phrases, and a
        pattern for these phrases.
        """
        patterns = {}
        for field in fields(self):
            if field.name not in ("stop_words", "endings"):
                anywhere = field.name not in _AT_THE_START
                phrases = getattr(self, field.name)
                alone = frozenset(filter(_PLAIN_WORD.fullmatch, phrases)) if anywhere else frozenset[str]()
                others = [phrase for phrase in phrases if phrase not in alone]
                start = r"\b" if anywhere else r"^\W*"
                pattern = re.compile(rf"{start}(?:{'|'.join(map(re.escape, others)) or '(?!)'})\b")
                first_words = frozenset(word for phrase in others for word in _PLAIN_WORD.findall(phrase)[:1])
                patterns[field.name] = alone, first_words, pattern
        return patterns

    def shown(self, text: str) -> Callable[[str], bool]:
        """A function that returns whether `text`, in lower case, contains a phrase of a cue.

        Example:
            >>> shows = ENGLISH.shown("thanks a lot")
            >>> shows("thanks"), shows("farewells")
            (True, False)
        """
        words, patterns = frozenset(_PLAIN_WORD.findall(text)), self.patterns

        def shows(name: str) -> bool:
            alone, first_words, pattern = patterns[name]
            # Most texts contain few phrases: sets exclude most patterns.
            return not alone.isdisjoint(words) or (
                not first_words.isdisjoint(words) and pattern.search(text) is not None
            )

        return shows


_AT_THE_START = frozenset(
    ["replies", "connectives", "greetings", "agreements", "refusals", "asking", "closed"]
)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in text.split(","))


ENGLISH = Phrases(
    stop_words=frozenset(
        _listed(
            """a, about, all, also, am, an, and, any, anything, are, as, at, be, because, been, but, by,
            can, could, did, do, does, doing, don't, for, from, get, give, go, got, had, has, have, he,
            hello, her, here, hey, hi, him, his, how, i, i'd, i'll, i'm, i've, if, in, into, is, it,
            it's, its, just, know, let, like, look, looking, make, me, more, much, my, need, no, not,
            now, of, ok, okay, on, one, or, other, our, out, please, really, say, see, she, should, so,
            some, something, sure, tell, than, thank, thanks, that, that's, the, their, them, then,
            there, there's, these, they, thing, this, those, to, too, up, us, very, want, was, we, well,
            were, what, what's, when, where, which, who, why, will, with, would, yes, you, you're, your"""
        )
    ),
    endings=("ing", "ies", "'s", "ed", "es", "s"),
    references=_listed(
        """that, it, this, they, them, those, these, its, their, he, she, him, her, his, there, one, ones,
        it's, that's, he's, she's, they're, other, another, else, instead, same, also"""
    ),
    replies=_listed(
        """yes, yeah, yep, yup, sure, ok, okay, no, nope, nah, not, correct, right, exactly, great, good,
        perfect, fine, cool, nice, awesome, wow, oh, ah, haha, hmm, well, alright, sounds, that's,
        definitely, absolutely, thanks, thank, all right, of course, please do, go ahead, that is,
        that works, i see, got it"""
    ),
    connectives=_listed(
        """and, but, also, so, then, or, what about, how about, what else, anything else, any other,
        another, actually, in that case, because"""
    ),
    greetings=_listed("hi, hello, hey, greetings, good morning, good afternoon, good evening"),
    requests=_listed(
        """i want, i need, i would like, i'd like, i'd love, i wish, i'm looking, i am looking, i'm trying,
        i am trying, i'm interested, i am interested, i'm planning, i am planning, can you, could you,
        would you, will you, help me, find me, please find, search for, looking for, let's talk,
        explain, what is, what are, who is, how do, how can"""
    ),
    farewells=_listed(
        """bye, goodbye, that's all, that is all, that will be all, nothing else, no thanks, no thank you,
        have a good, have a great, have a nice, have a wonderful, enjoy, take care, you're welcome,
        you are welcome, glad to help, happy to help, my pleasure"""
    ),
    agreements=_listed(
        """yes, yeah, yep, yup, sure, ok, okay, correct, right, exactly, great, good, perfect, fine, cool,
        alright, all right, sounds, definitely, absolutely, of course, please do, go ahead, that works,
        that's fine, that's right, that's correct, that's good, that is, i confirm, i like, it's good"""
    ),
    refusals=_listed(
        """no, nope, nah, not, don't, that's wrong, that's not, i don't, i'd rather, never mind, nothing"""
    ),
    thanks=_listed("thanks, thank you, thank, thx, appreciate, grateful, helpful"),
    returns=_listed(
        """back to, going back, go back, returning to, return to, coming back, as for, regarding, concerning,
        earlier, previously, previous, before, you mentioned, you said, you told, we talked, we discussed,
        we were, i asked, i mentioned, i said, the other, about the, about that, about my, again, still"""
    ),
    changes=_listed(
        """actually, instead, change, rather, wait, sorry, correction, i meant, i mean, on second thought,
        make it, modify, switch, different, something else, anything else, any other, other, another, else"""
    ),
    asking=_listed(
        """what, what's, where, where's, when, who, who's, whose, which, why, how, is, are, am, was, were,
        do, does, did, can, could, would, will, should, shall, may, has, have, isn't, aren't, don't"""
    ),
    alternatives=_listed(
        """first, second, third, last, former, latter, either, neither, both, any, all, none, whichever,
        that one, this one, the one, any one, doesn't matter, don't care, don't mind, cheapest, cheaper"""
    ),
    closed=_listed(
        """is, are, was, were, do, does, did, can, could, would, will, should, shall, may, might, have, has,
        am, isn't, aren't, don't, anything, any, so, and is, and are, and do, okay, ok, right, correct"""
    ),
    confirmations=_listed(
        """confirm, is that correct, is that right, is this correct, is this right, correct, right,
        is that ok, is that okay, does that, is it ok, please verify, double check, shall i, should i go"""
    ),
    completions=_listed(
        """booked, confirmed, successful, successfully, reserved, purchased, completed, scheduled, done,
        has been, have been, all set, is set, placed, cancelled, canceled, sent, added, playing"""
    ),
    offers=_listed(
        """anything else, something else, what else, any other, help you with, assist you with, further,
        more questions, how can i help, how may i help, what can i do, more help, feel free"""
    ),
    apologies=_listed(
        """sorry, unfortunately, apologize, i couldn't, i could not, i can't, i cannot, unable, didn't,
        failed, not available, no results, please provide, please clarify"""
    ),
    disjunctions=_listed("or, which, either, prefer, any of, among, between"),
    numbers=_listed(
        """how many, how much, how long, how old, number, age, budget, price, zip code, zip, rating, stars,
        people, tickets, seats, guests, rooms, persons, passengers, amount, id, size"""
    ),
    amounts=_listed(
        """one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, twenty, single, couple,
        a few, dozen, myself, just me, hundred"""
    ),
    times=_listed(
        """when, time, date, day, month, year, what time, which day, how soon, schedule, check in, check out,
        leave, leaving, depart, departing, pick up"""
    ),
    moments=_listed(
        """noon, midnight, morning, afternoon, evening, tonight, today, tomorrow, yesterday, am, pm, o'clock,
        next week, this week, next month, monday, tuesday, wednesday, thursday, friday, saturday, sunday,
        january, february, march, april, may, june, july, august, september, october, november, december,
        the 1st, the 2nd, the 3rd, the 4th, the 5th, the 6th, the 7th, the 8th, the 9th, the 10th, the 11th,
        the 12th, the 13th, the 14th, now, later, soon, weekend, week, day after"""
    ),
    wheres=_listed(
        """where, city, town, address, location, area, place, country, destination, from where, region,
        state, departure, departing from, traveling to, going to, heading, headed"""
    ),
    places=_listed("in, at, to, from, near, around, street, avenue, road, boulevard, city, airport, station"),
    whos=_listed("who, name, whom, title, which movie, which song, which artist, which restaurant, account"),
    names=_listed("my name, i'm, i am, called, named, name is, this is, it's, by"),
)
