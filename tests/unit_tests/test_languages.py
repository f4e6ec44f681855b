"""Languages: the lists of phrases, the language of a text, and selection in other languages than English."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from langchain_threadmem import (
    ChatMemory,
    LocalEmbeddings,
    MemorySystem,
    MultilingualEmbeddings,
    SemanticNodeSelector,
)
from langchain_threadmem.engine import multilingual_embeddings
from langchain_threadmem.errors import EmbeddingError, InputError
from langchain_threadmem.selection import choice, model
from langchain_threadmem.selection.features import phrases as lists
from langchain_threadmem.selection.features.cues import MESSAGE_CUES, end_cues, message_cues, names, terms
from langchain_threadmem.selection.features.phrases import Phrases, language_of, phrases_in
from langchain_threadmem.selection.turn_ends import TurnEnd

Wrap = Callable[[ChatMemory], Any]
CODES = sorted(path.stem for path in Path(lists.__file__).with_name("languages").glob("*.toml"))
SAID = {
    "ar": "كم من الوقت يجب أن أترك العجين ليرتاح؟",
    "de": "Wie lange muss der Teig ruhen?",
    "en": "How long should the dough rest?",
    "es": "¿Cuánto tiempo tiene que reposar la masa?",
    "fr": "Combien de temps la pâte doit-elle reposer ?",
    "id": "Berapa lama adonan harus didiamkan?",
    "it": "Per quanto tempo deve riposare l'impasto?",
    "ja": "生地はどのくらい休ませればいいですか？",
    "ko": "반죽은 얼마나 쉬게 해야 하나요?",
    "nl": "Hoe lang moet het deeg rusten?",
    "pl": "Jak długo ciasto powinno odpoczywać?",
    "pt": "Por quanto tempo a massa deve descansar?",
    "ru": "Сколько времени тесто должно отдыхать?",
    "zh": "面团要醒多久？",
}


def cues(message: str, code: str) -> set[str]:
    found = message_cues(message, phrases_in(code))
    return {name for name, value in zip(MESSAGE_CUES, found, strict=True) if value == 1.0}


@pytest.mark.parametrize("code", CODES)
def test_each_language_has_phrases_for_every_cue(code: str) -> None:
    found = phrases_in(code)
    missing = [
        field.name
        for field in fields(Phrases)
        if field.name not in lists.AFFIXES and getattr(found, field.name) == ()
    ]
    assert missing == []
    assert len(found.stop_words) >= 100


@pytest.mark.parametrize("code", CODES)
def test_phrases_are_in_lower_case_and_named_once(code: str) -> None:
    for field in fields(Phrases):
        listed = getattr(phrases_in(code), field.name)
        if isinstance(listed, tuple):
            assert [phrase for phrase in listed if phrase != phrase.lower()] == []
            assert len(set(listed)) == len(listed)


@pytest.mark.parametrize(("code", "text"), SAID.items())
def test_a_text_tells_its_language(code: str, text: str) -> None:
    assert language_of(text) == code


def test_the_earlier_texts_decide_where_a_text_does_not() -> None:
    assert language_of("Ok, 42.") == "en"
    assert language_of("Ok, 42.", [SAID["de"]]) == "de"
    assert language_of("Ok, 42.", [SAID["ru"]]) == "ru"
    assert language_of(SAID["es"], [SAID["de"]]) == "es"


UNLISTED = {
    "Hindi": "मेरी दुकान में चूहे बहुत हो गए हैं, क्या करूँ",
    "Swahili": "kuku wangu hawatagi mayai tena tangu wiki iliyopita, nifanye nini sasa",
    "Turkish": "salonu boyatmak istiyorum, sence beyaz mı krem mi daha güzel",
    "Greek": "πόση ώρα πρέπει να ξεκουραστεί η ζύμη πριν την ψήσω",
}


@pytest.mark.parametrize("text", UNLISTED.values(), ids=UNLISTED)
def test_a_text_in_a_language_without_phrases_is_in_no_listed_language(text: str) -> None:
    assert language_of(text) == lists.UNDETERMINED
    assert language_of("Ok, 42.", [text]) == lists.UNDETERMINED
    assert language_of(SAID["es"], [text]) == "es"
    assert language_of("How do I read the second file?", [text]) == "en"
    assert not any(message_cues(text, phrases_in(lists.UNDETERMINED))[4:])


def test_a_pasted_traceback_stays_in_the_language_of_the_conversation() -> None:
    pasted = (
        'Traceback (most recent call last):\n  File "app/worker.py", line 3, in <module>\n'
        "ImportError: cannot import name queue"
    )
    assert language_of(pasted) == "en"
    assert language_of(pasted, ["Why does the worker stop at once?", "Can you paste what it prints?"]) == "en"


def test_vowel_signs_are_parts_of_words() -> None:
    assert terms("मेरी दुकान", phrases_in(lists.UNDETERMINED)) == {"मेरी", "दुकान"}
    assert terms("ข้าวผัด", phrases_in(lists.UNDETERMINED)) == {"ข้าวผัด"}
    assert terms("read_csv isn't", phrases_in(lists.UNDETERMINED)) == {"read", "csv", "isn't"}


@pytest.mark.parametrize(
    ("code", "message", "cue"),
    [
        ("de", "Danke, das hilft mir", "thanks"),
        ("es", "Hola, buenas", "greeting"),
        ("fr", "Non merci", "refusal"),
        ("it", "Vorrei prenotare un tavolo", "request"),
        ("pt", "E quanto custa?", "connective"),
        ("pl", "Tak, poproszę", "agreement"),
        ("nl", "Even terug naar de fiets", "return"),
        ("zh", "你好，我想订一个房间", "greeting"),
        ("zh", "谢谢", "thanks"),
        ("ja", "ありがとうございます", "thanks"),
        ("ko", "네, 좋아요", "agreement"),
        ("ar", "شكرًا جزيلا", "thanks"),
        ("ru", "Спасибо большое", "thanks"),
        ("id", "Terima kasih banyak", "thanks"),
    ],
)
def test_cues_are_found_in_their_language(code: str, message: str, cue: str) -> None:
    assert cue in cues(message, code)


def test_chinese_and_japanese_are_compared_by_pairs_of_characters() -> None:
    assert terms("面团要醒多久", phrases_in("zh")) >= {"面团"}
    assert terms("生地を休ませる", phrases_in("ja")) >= {"生地"}


def test_an_elided_article_is_no_part_of_a_word() -> None:
    assert terms("L'hôtel", phrases_in("fr")) == terms("hôtel", phrases_in("fr"))


@pytest.mark.parametrize(
    ("code", "written", "typed"),
    [
        ("en", "I don't think that's what I'm paying for", "i dont think thats what im paying for"),
        ("es", "¿Cuándo vendrá el técnico por la presión?", "cuando vendra el tecnico por la presion?"),
        ("it", "Perché il caffè è più caro in città?", "perche il caffe e piu caro in citta?"),
        ("fr", "Où est passé le préfet de la forêt ?", "ou est passe le prefet de la foret ?"),
        ("pt", "Não sei a que horas abre a estação", "nao sei a que horas abre a estaçao"),
        ("pl", "Dlaczego Łódź jest droższa?", "dlaczego lodz jest drozsza?"),
        ("de", "Wie heiß wird die Straße?", "wie heiss wird die strasse?"),
    ],
)
def test_words_are_compared_without_accents_and_apostrophes(code: str, written: str, typed: str) -> None:
    assert terms(typed, phrases_in(code)) == terms(written, phrases_in(code)) != frozenset()


def test_german_nouns_are_no_names() -> None:
    assert names("Buche das Zimmer 12", phrases_in("de")) == {"12"}


def test_a_question_in_another_language_ends_with_what_it_asks_for() -> None:
    found = end_cues("Un tavolo", "Certo. Per quante persone?", phrases_in("it"))
    assert found[0] == found[3] == 1.0


@pytest.mark.parametrize("code", [code for code in CODES if code != "en"])
def test_a_new_matter_in_another_language_opens_a_thread_and_an_answer_does_not(code: str) -> None:
    human, answer, reply, opening = TALK[code]
    turns = [TurnEnd(2, None, SAID[code], "1."), TurnEnd(4, 2, human, answer)]
    none = np.zeros((2, 0), np.float32)
    assert choice.choose(turns, none, none, reply, None).parent_id == 4
    opens = choice.choose(turns, none, none, opening, None).probabilities[None]
    assert opens > 2 * choice.choose(turns, none, none, reply, None).probabilities[None]


TALK = {
    "ar": ("ومتى أخبزه؟", "بعد ساعة. هل لديك فرن؟", "نعم", "مرحبا، أريد حجز غرفة في فندق"),
    "de": (
        "Und wann backe ich es?",
        "Nach einer Stunde. Hast du einen Ofen?",
        "Ja",
        "Hallo, ich brauche ein Hotel",
    ),
    "es": ("¿Y cuándo lo horneo?", "En una hora. ¿Tienes horno?", "Sí", "Hola, necesito reservar un hotel"),
    "fr": (
        "Et quand je le cuis ?",
        "Dans une heure. Avez-vous un four ?",
        "Oui",
        "Bonjour, je voudrais un hôtel",
    ),
    "id": ("Lalu kapan dipanggang?", "Satu jam lagi. Punya oven?", "Ya", "Halo, saya mau pesan hotel"),
    "it": ("E quando lo inforno?", "Tra un'ora. Hai un forno?", "Sì", "Ciao, vorrei prenotare un albergo"),
    "ja": (
        "いつ焼きますか？",
        "一時間後です。オーブンはありますか？",
        "はい",
        "こんにちは、ホテルを予約したいです",
    ),
    "ko": ("언제 구워요?", "한 시간 후에요. 오븐이 있나요?", "네", "안녕하세요, 호텔을 예약하고 싶어요"),
    "nl": (
        "En wanneer bak ik het?",
        "Na een uur. Heb je een oven?",
        "Ja",
        "Hallo, ik wil graag een hotel boeken",
    ),
    "pl": ("A kiedy je piec?", "Za godzinę. Masz piekarnik?", "Tak", "Dzień dobry, chcę zarezerwować hotel"),
    "pt": ("E quando eu asso?", "Em uma hora. Você tem forno?", "Sim", "Olá, quero reservar um hotel"),
    "ru": ("А когда печь?", "Через час. У вас есть духовка?", "Да", "Здравствуйте, мне нужен отель"),
    "zh": ("什么时候烤？", "一小时后。你有烤箱吗？", "有的", "你好，我想订一家酒店"),
}


def test_a_language_without_learned_words_has_networks_of_its_own() -> None:
    assert model.input_of("", None, neutral=True) == "neutral_words"
    assert model.input_of("another", 512, neutral=True) == "neutral_vectors"
    assert model.input_of("all-MiniLM-L6-v2", 384, neutral=True) == "neutral_words"


def test_multilingual_embeddings_compare_texts_of_two_languages() -> None:
    german, english, other = MultilingualEmbeddings().embed_array(
        [SAID["de"], SAID["en"], "The train is late"]
    )
    assert german @ english > 0.5 > german @ other
    assert np.linalg.norm(german) == pytest.approx(1.0)


def test_multilingual_embeddings_take_any_text_and_no_other_value() -> None:
    embeddings = MultilingualEmbeddings()
    assert np.isfinite(embeddings.embed_array(["", "\ud800", "x" * 100_000])).all()
    assert embeddings.embed_array([]).shape == (0, embeddings.dimensions)
    with pytest.raises(InputError, match="use \\[text\\]"):
        embeddings.embed_array("text")
    with pytest.raises(InputError, match="only strings"):
        embeddings.embed_array([3])  # type: ignore[list-item]


def test_without_the_extra_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MultilingualEmbeddings, "available", classmethod(lambda cls: False))
    with pytest.raises(EmbeddingError, match=r"langchain-threadmem\[multilingual\]"):
        MultilingualEmbeddings()


@pytest.fixture
def changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of the multilingual model has other weights than those that were fitted."""
    weights, tokenizer = multilingual_embeddings.FILES
    other = replace(weights, sha256="0" * 64)
    monkeypatch.setattr(multilingual_embeddings, "FILES", (other, tokenizer))


@pytest.mark.usefixtures("changed")
def test_a_multilingual_model_that_has_changed_is_refused_with_both_digests() -> None:
    with pytest.raises(EmbeddingError, match=r"weights\.npz' is not used.*is '0db5.*expected '0{64}'"):
        MultilingualEmbeddings()


@pytest.fixture
def default_system(url: str, owner: str) -> Any:
    if not LocalEmbeddings.available():
        pytest.skip("the extra `local` is not installed")
    with MemorySystem(url, owner=owner) as system:
        yield system


def test_a_conversation_in_another_language_is_compared_by_the_multilingual_model(
    default_system: MemorySystem, verbs: Wrap
) -> None:
    verb = verbs(default_system.conversation("talk", node_selector=SemanticNodeSelector()))
    verb.append("Wie lange muss der Brotteig gehen?", "Etwa zwei Stunden, bis er sich verdoppelt hat.")
    verb.append("Guten Tag, ich suche einen Flug nach Lissabon", "An welchem Tag möchten Sie fliegen?")
    [human, _] = verb.append("Und wie heiß muss der Ofen für das Brot sein?", "Etwa 230 Grad.")
    assert human.parent_id == 2
    assert "similarity" in human.placement.reason


@pytest.mark.usefixtures("changed")
def test_a_changed_model_is_replaced_by_the_default_model_with_one_warning(
    default_system: MemorySystem, verbs: Wrap, caplog: pytest.LogCaptureFixture
) -> None:
    verb = verbs(default_system.conversation("talk", node_selector=SemanticNodeSelector()))
    with caplog.at_level(logging.WARNING):
        for text in ("Wie lange muss der Teig gehen?", "Und wie heiß ist der Ofen?"):
            verb.append(text, "Das kommt darauf an.")
    assert len([record for record in caplog.records if "has changed" in record.message]) == 1


def test_without_the_extra_words_decide_and_one_warning_names_it(
    default_system: MemorySystem, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(MultilingualEmbeddings, "available", classmethod(lambda cls: False))
    memory = default_system.conversation("talk", node_selector=SemanticNodeSelector())
    with caplog.at_level(logging.WARNING):
        for text in (
            "Wie lange muss der Teig gehen?",
            "Und wie heiß ist der Ofen?",
            "Und wann ist es fertig?",
        ):
            memory.append(text, "Das kommt darauf an.")
    assert [record.message for record in caplog.records if "multilingual" in record.message] != []
    assert len([record for record in caplog.records if "multilingual" in record.message]) == 1
