"""Greetings before a request and thanks after it, in 30 languages."""

from __future__ import annotations

import re
from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GREETINGS: Final = """
hi, hello, hey, hiya, howdy, greetings, good morning, good afternoon, good evening, good day, dear, hi
there, heya, ehilà, ehila, buondì, buondi, moinsen, hejka, oie, hello there, hey there, hola, buenas, buenos
días, buenos dias, buen día, buenas tardes, buenas noches, muy buenas, estimado, estimada, bonjour, bonsoir,
salut, coucou, cher, chère, rebonjour, hallo, hallöchen, guten tag, guten morgen, guten abend, servus, moin,
grüezi, grüß gott, grüß dich, liebes team, sehr geehrte, sehr geehrter, ciao, ehi, salve, buongiorno, buon
giorno, buonasera, buona sera, gentile, egregio, spettabile, oi, olá, ola, bom dia, boa tarde, boa noite,
prezado, prezada, caro, cara, hoi, goedemorgen, goedemiddag, goedenavond, goedendag, beste, geachte, cześć,
czesc, dzień dobry, dzien dobry, witam, witaj, hej, siema, szanowni państwo, szanowny panie, szanowna pani,
ahoj, dobrý den, dobry den, zdravím, hejsan, god morgon, god dag, goddag, god morgen, hei, moi, terve, hyvää
päivää, hyvää huomenta, szia, sziasztok, jó napot, jó reggelt, bună, buna ziua, bună ziua, salutare,
merhaba, selam, günaydın, iyi günler, iyi akşamlar, sayın, γεια, γεια σου, γεια σας, καλημέρα, καλησπέρα,
привет, здравствуйте, здравствуй, добрый день, доброе утро, добрый вечер, уважаемый, привіт, добрий день,
вітаю, здравейте, здраво, zdravo, dobar dan, bok, xin chào, chào, chào bạn, halo, hai, selamat pagi, selamat
siang, selamat sore, selamat malam, assalamualaikum, salam, kumusta, habari, jambo, hujambo, mambo,
shikamoo, sawubona, नमस्ते, नमस्कार, हैलो, हाय, नमस्कारम्, নমস্কার, হ্যালো, வணக்கம், నమస్కారం, ನಮಸ್ಕಾರ, ਸਤ
ਸ੍ਰੀ ਅਕਾਲ, سلام, مرحبا, مرحبًا, أهلا, أهلاً, اهلا, السلام عليكم, صباح الخير, مساء الخير, درود, שלום, היי,
בוקר טוב, ערב טוב, สวัสดี, สวัสดีครับ, สวัสดีค่ะ, 안녕, 안녕하세요, 안녕하십니까, 여보세요
"""
_GREETINGS_WITH_A_MARK: Final = """
yo, sup, morning, afternoon, evening, gm, oye, oye hola, qué tal, que tal, tach, e aí, e ai, opa, fala
"""
"""Words that are greetings before a comma or another mark alone."""
_AFTER_GREETING: Final = """
how are you, how are you doing, how are you today, how are things, how's it going, how is it going, what's
up, hope you are well, hope you're well, i hope you are well, i hope you're well, hope all is well, hope
this finds you well, it's me again, me again, qué tal, que tal, qué tal estás, que tal estas, qué tal todo,
cómo estás, como estas, cómo está, cómo te va, cómo va, todo bien, espero que estés bien, ça va, ca va, ça
va bien, comment ça va, comment vas-tu, comment allez-vous, tu vas bien, vous allez bien, j'espère que tu
vas bien, wie geht's, wie gehts, wie geht es dir, wie geht es ihnen, alles klar, alles gut, come va, come
stai, come sta, tutto bene, tudo bem, td bem, tudo bom, tudo certo, tudo bem com você, como vai, como você
está, beleza, hoe gaat het, hoe gaat het met je, alles goed, jak się masz, co słychać, как дела, как ты, apa
kabar, nasılsın, nasılsınız, كيف حالك, कैसे हो, कैसे हैं आप, 잘 지내세요, 잘 지내
"""
"""Questions and wishes after a greeting."""
_AFTER_GREETING_IN_PAIRS: Final = "元気ですか, お元気ですか, 你好吗, 最近好吗, 最近怎么样"
_GREETINGS_IN_PAIRS: Final = """
こんにちは, こんにちわ, こんばんは, おはようございます, おはよう, はじめまして, お世話になっております,
もしもし, やあ, 你好, 您好, 妳好, 大家好, 早上好, 上午好, 中午好, 下午好, 晚上好, 早安, 嗨, 哈喽, 哈囉
"""
_THANKS: Final = """
thanks, thank you, thankyou, thx, tnx, many thanks, much appreciated, cheers, kind regards, best regards,
warm regards, regards, ty, tysm, tyvm, appreciate it, much obliged, se agradece, grz, brigado, brigada,
desde já agradeço, desde já obrigado, desde já obrigada, best wishes, sincerely, yours sincerely, all the
best, gracias, muchas gracias, mil gracias, te agradezco, le agradezco, saludos, un saludo, un abrazo,
abrazos, besos, atentamente, merci, merci beaucoup, merci bien, je vous remercie, je te remercie,
cordialement, bien à vous, bises, bisous, bonne journée, danke, danke schön, dankeschön, vielen dank, besten
dank, herzlichen dank, lieben dank, mit freundlichen grüßen, viele grüße, liebe grüße, schöne grüße, beste
grüße, grüße, gruß, lg, vg, mfg, grazie, grazie mille, mille grazie, molte grazie, tante grazie, ti
ringrazio, la ringrazio, cordiali saluti, distinti saluti, saluti, un saluto, un abbraccio, abbracci,
obrigado, obrigada, muito obrigado, muito obrigada, valeu, agradeço, abraços, abraço, um abraço, abs,
beijos, um beijo, obg, vlw, atenciosamente, bedankt, dank je, dankjewel, dank u, dank u wel, alvast bedankt,
met vriendelijke groet, groetjes, groeten, dzięki, dzieki, dziękuję, dziekuje, z góry dziękuję, pozdrawiam,
děkuji, dekuji, díky, s pozdravem, tack, tack så mycket, mange tak, takk, tusen takk, med vänlig hälsning,
mvh, kiitos, kiitos paljon, köszönöm, köszi, üdvözlettel, mulțumesc, multumesc, mersi, teşekkürler, teşekkür
ederim, tesekkurler, sağol, saygılarımla, ευχαριστώ, спасибо, большое спасибо, спасибо большое, заранее
спасибо, благодарю, с уважением, дякую, благодаря, hvala, cảm ơn, cám ơn, terima kasih, makasih, trims,
salam hangat, salamat, asante, asante sana, ahsante, ngiyabonga, धन्यवाद, बहुत धन्यवाद, शुक्रिया, ধন্যবাদ,
நன்றி, ధన్యవాదాలు, ಧನ್ಯವಾದಗಳು, ਧੰਨਵਾਦ, شكرا, شكرًا, شكرا جزيلا, متشكرم, ممنون, مرسی, شکریہ, תודה, תודה רבה,
בברכה, ขอบคุณ, ขอบคุณครับ, ขอบคุณค่ะ, 감사합니다, 감사해요, 고마워, 고마워요, 고맙습니다, 수고하세요
"""
_THANKS_IN_PAIRS: Final = """
ありがとう, ありがとうございます, 有難うございます, よろしくお願いします, よろしくお願いいたします,
よろしくお願い致します, 宜しくお願いします, よろしく, 助かります, 感謝します, 🙏, 谢谢, 謝謝, 谢谢你, 谢谢您,
多谢, 多謝, 感谢, 感謝, 非常感谢, 麻烦了, 拜托了
"""
_SIGNING: Final = """
best, all best, yours, yours truly, warmly, cordially, respectfully, love, hugs, take care, talk soon, bien
à toi, amicalement, à bientôt, à plus, bis bald, bis dann, tschüss, herzlich, herzlichst, a presto, ciao,
tuo, tua, baci, hasta pronto, hasta luego, tuyo, tuya, cuídate, até logo, até mais, até breve, fica bem,
groet, tot snel
"""
"""Words before the name with which a letter ends."""
QUESTIONS: Final = _words(
    """
    question query user input request instruction message prompt human frage anfrage pregunta consulta
    pergunta domanda requête demande utilisateur benutzer usuario utente vraag pytanie вопрос запрос soru
    pertanyaan swali 问题 問題 提问 用户 質問 ユーザー 질문 사용자 سؤال प्रश्न
    """
)
"""Words of labels before the question of a prompt template."""
DISCOURSE: Final = _words(
    """
    yes yeah yep no nope ok okay and also but so then or well right sure great thanks actually now sí si
    vale bueno entonces y pero oui non et mais alors donc ja nein und aber doch gut sì e ma allora bene
    sim não mas então nee en maar dus tak nie i ale да нет и а но ya tidak はい いいえ でも じゃあ 好 对
    不 네 아니요 نعم لا
    """
)
"""Words at the beginning of a message that relate it to the message before."""
TIMES: Final = _words(
    """
    am pm monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun january
    february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar
    märz mai juni juli oktober dezember lundi mardi mercredi jeudi vendredi samedi dimanche janvier
    février mars avril juin juillet août septembre octobre novembre décembre lunes martes miércoles jueves
    viernes sábado domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
    diciembre lunedì martedì mercoledì giovedì venerdì sabato domenica gennaio febbraio aprile maggio
    giugno luglio settembre ottobre dicembre segunda terça quarta quinta sexta janeiro fevereiro março
    maio junho julho setembro outubro novembro dezembro
    """
)
"""Words of dates and times of day."""
_NAME: Final = r"[^\W\d_][\w.'\u2019-]*"
_MARKS: Final = r",.!:;~\u3002\uff01\uff0c\u3001\u060c\u0964"
_FACES: Final = r"[\u2600-\u27bf\u2b50\ufe0f\u200d\U0001f300-\U0001faff]|[:;]-?[)D]|\^\^|<3"
"""Emoji, and smileys of signs."""


def _one_of(phrases: str, pairs: str = "") -> str:
    """A pattern for whole phrases, and for phrases of languages without spaces, the longest first."""

    def listed(several: str) -> str:
        found = sorted(
            {" ".join(phrase.split()) for phrase in several.split(",")}, key=lambda one: (-len(one), one)
        )
        # People draw words out: "holaaa", "graciasss".
        return "|".join(
            re.escape(one).replace(r"\ ", r"\s+") + f"{re.escape(one[-1:])}*" for one in found if one
        )

    return rf"(?:(?<!\w)(?:{listed(phrases)})(?!\w){'|' * bool(pairs)}{listed(pairs)})"


_GREETS: Final = _one_of(_GREETINGS, _GREETINGS_IN_PAIRS)
_AGAIN: Final = (
    r"there|again|all|everyone|dear|my|a tutti|a todos|otra vez|de nuevo|di nuovo|de novo|nochmal|zusammen"
)
_TO_NAME: Final = rf"(?:[ ]+(?:{_AGAIN}))?(?:[ ]+{_NAME})?(?:[ ]*(?:{_FACES}|[{_MARKS}]))+"
GREETING: Final = re.compile(
    rf"(?:{_GREETS}(?:[ ]+{_GREETS})*(?:{_TO_NAME}|(?=\s))|{_one_of(_GREETINGS_WITH_A_MARK)}{_TO_NAME})"
    rf"(?:\s*[\xa1\xbf]?{_one_of(_AFTER_GREETING, _AFTER_GREETING_IN_PAIRS)}[ ]*[{_MARKS}?\uff1f\u061f]+)?",
    re.IGNORECASE,
)
"""A greeting, with the name and the punctuation after it, and a question such as "how are you?"."""
_SIGNATURE: Final = rf",(?:[ ]*\n\s*|[ ]+(?-i:(?![a-z]))){_NAME}(?:[ ]+{_NAME}){{0,2}}\s*$"
"""A comma, and a name on the next line or with a capital."""
_THANKING: Final = re.compile(
    rf"\xa1?{_one_of(_THANKS, _THANKS_IN_PAIRS)}|{_one_of(_SIGNING)}(?={_SIGNATURE})", re.IGNORECASE
)
_WORD: Final = re.compile(r"\w+")
_DRAWN_OUT: Final = re.compile(r"(\w)\1+\b")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\U0001f64f]")


def _folded_words(text: str) -> list[str]:
    """The words of a text, in the form in which words are equal that patterns match in any case."""
    folded = text.casefold().replace("i\u0307", "i").replace("\u0131", "i")
    return _WORD.findall(_DRAWN_OUT.sub(r"\1", folded))


_OF_THANKS: Final = frozenset(
    max(_folded_words(phrase), key=len) for phrase in f"{_THANKS},{_SIGNING}".split(",")
)
"""The longest word of each phrase."""
_AFTER_THANKS: Final = re.compile(
    rf"(?:[\s{_MARKS}]+{_NAME}){{0,5}}(?:[\s{_MARKS}]|{_FACES})*$", re.IGNORECASE
)


def greets(text: str) -> bool:
    """Whether a text is a greeting in any language and nothing else.

    Example:
        >>> greets("Hola Ada!"), greets("Hola, ¿abre el museo?")
        (True, False)
    """
    greeting = GREETING.match(text := text.strip() + " ")
    return greeting is not None and not any(map(str.isalnum, text[greeting.end() :]))


def thanks_at_end(text: str) -> int | None:
    """The place of the thanks at the end of a text, which a name or a few words may follow.

    Example:
        >>> thanks_at_end("Is rye sour? Many thanks, Ada"), thanks_at_end("Thanks for that, is rye sour?")
        (13, None)
    """
    # Most texts have no word of thanks; the pattern takes 90 µs to find that out, the set 4 µs.
    if _OF_THANKS.isdisjoint(_folded_words(text)) and not _UNSPACED.search(text):
        return None
    spans = [found.span() for found in _THANKING.finditer(text)]
    if not spans or not _AFTER_THANKS.match(text, spans[-1][1]):
        return None
    place = spans[-1][0]
    for start, end in reversed(spans[:-1]):
        if any(map(str.isalnum, text[end:place])):
            break
        place = start
    return place
