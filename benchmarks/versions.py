"""Corrected facts, similar statements about other things, and queries without sense, in recall.

Each pair of statements is told in one conversation, with other messages between them; its question is then
recalled. Of a corrected fact the newer statement should be first, of two different things the one that is
asked for. A query without sense, and a statement that shares no word with its question, are compared with the
threshold of weak hits, `weak_below`.

    python -m benchmarks.versions
"""

from __future__ import annotations

import random
import string
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from benchmarks._measure import Line, command
from langchain_threadmem import ChatMemory, LocalEmbeddings, MultilingualEmbeddings

Pair = tuple[str, str, str]
CORRECTED = [
    ("My office is in Rome.", "I moved: my office is in Oslo now.", "Where is my office?"),
    ("My dog is called Rex.", "We renamed the dog: he is called Max now.", "What is my dog called?"),
    ("I live in Berlin.", "I moved, I live in Hamburg since May.", "Where do I live?"),
    ("My phone number is 555-0101.", "I have a new phone number: 555-0199.", "What is my phone number?"),
    ("The meeting is on Monday at 10.", "The meeting was moved to Wednesday at 2.", "When is the meeting?"),
    (
        "My favourite colour is blue.",
        "My favourite colour is green these days.",
        "What is my favourite colour?",
    ),
    (
        "I drink my coffee with milk.",
        "I no longer take milk in my coffee, I drink it black.",
        "How do I drink my coffee?",
    ),
    (
        "Our budget for the trip is 2000 euros.",
        "The budget for the trip has been cut to 1500 euros.",
        "What is the budget for the trip?",
    ),
    ("I work at Siemens as an engineer.", "I quit Siemens; I work at Bosch now.", "Where do I work?"),
    (
        "My daughter's birthday party is on Saturday.",
        "Correction: my daughter's birthday party is on Sunday.",
        "When is my daughter's birthday party?",
    ),
    (
        "We use PostgreSQL 14 in production.",
        "We upgraded production to PostgreSQL 16.",
        "Which PostgreSQL version do we use in production?",
    ),
    ("I am vegetarian.", "I eat fish again, so I am no longer strictly vegetarian.", "Am I vegetarian?"),
    (
        "The wifi password is tulip42.",
        "The wifi password changed to rosebud77.",
        "What is the wifi password?",
    ),
    ("My flight leaves at 6:30.", "The flight was delayed, it leaves at 9:15.", "When does my flight leave?"),
    (
        "The deadline for the report is March 3.",
        "They extended the deadline for the report to March 17.",
        "What is the deadline for the report?",
    ),
    ("My car is a red Toyota.", "I sold the Toyota, my car is a grey Volvo now.", "What car do I have?"),
    (
        "I take 20 mg of the medication a day.",
        "The doctor raised the medication to 40 mg a day.",
        "How much medication do I take?",
    ),
    (
        "My girlfriend's name is Anna.",
        "Anna and I broke up, my girlfriend's name is Lea.",
        "What is my girlfriend's name?",
    ),
    (
        "I run five kilometres every morning.",
        "I now run eight kilometres every morning.",
        "How far do I run every morning?",
    ),
    (
        "The project is written in Python.",
        "We rewrote the project in Rust.",
        "Which language is the project written in?",
    ),
    ("My gym opens at 7.", "My gym opens at 6 from this week on.", "When does my gym open?"),
    ("I weigh 82 kilos.", "I weigh 79 kilos now.", "How much do I weigh?"),
    ("My doctor is Dr. Schmidt.", "My doctor retired; my new doctor is Dr. Lang.", "Who is my doctor?"),
    ("We have three cats.", "We adopted another one, so we have four cats.", "How many cats do we have?"),
    ("My rent is 900 euros.", "My rent went up to 980 euros.", "How much is my rent?"),
    ("Please call me Tom.", "Please call me Thomas, not Tom.", "What should you call me?"),
    (
        "The server runs on port 8080.",
        "I changed the server, it runs on port 9090.",
        "Which port does the server run on?",
    ),
    ("Our wedding is in June.", "We postponed the wedding to September.", "When is our wedding?"),
    (
        "My son goes to the school in Main Street.",
        "My son changed schools, he goes to the one in Park Lane.",
        "Where does my son go to school?",
    ),
    (
        "I play the guitar in a band.",
        "I left the band, I play the piano alone.",
        "What instrument do I play?",
    ),
    (
        "The sourdough needs 4 hours to rise.",
        "The sourdough needs 6 hours to rise in my cold kitchen.",
        "How long does the sourdough need to rise?",
    ),
    (
        "My password manager is LastPass.",
        "I switched my password manager to Bitwarden.",
        "Which password manager do I use?",
    ),
    (
        "My train is at 17:05 from platform 3.",
        "The train now leaves at 17:25 from platform 9.",
        "When does my train leave?",
    ),
    ("I'm learning Spanish.", "I gave up Spanish and I'm learning Italian.", "Which language am I learning?"),
    ("The invoice number is 4711.", "Sorry, the invoice number is 4712.", "What is the invoice number?"),
    (
        "Our team has 8 members.",
        "Two people joined, our team has 10 members.",
        "How many members does our team have?",
    ),
    ("My mother lives in Porto.", "My mother moved to Lisbon last month.", "Where does my mother live?"),
    (
        "The hotel is the Grand Plaza.",
        "We changed the hotel, it is the Sea View.",
        "Which hotel do we stay at?",
    ),
    (
        "I have an appointment with the dentist on Friday.",
        "The appointment with the dentist is on Tuesday instead.",
        "When is my appointment with the dentist?",
    ),
    (
        "The API rate limit is 100 requests per minute.",
        "The API rate limit is now 250 requests per minute.",
        "What is the API rate limit?",
    ),
    ("Ada's favourite tea is camomile.", "Ada's favourite tea is mint now.", "What is Ada's favourite tea?"),
    (
        "I sleep six hours a night.",
        "I sleep seven and a half hours a night lately.",
        "How many hours do I sleep?",
    ),
    (
        "The kids' bedtime is eight.",
        "The kids' bedtime is half past eight now that they are older.",
        "When is the kids' bedtime?",
    ),
    (
        "My address is 12 Elm Street.",
        "We moved to 40 Oak Avenue, please use this address.",
        "What is my address?",
    ),
    (
        "Our guests arrive on the 5th.",
        "Our guests arrive on the 7th, not on the 5th.",
        "When do our guests arrive?",
    ),
    ("Our standup is at 9:15.", "Starting next week our standup is at 9:45.", "What time is our standup?"),
    ("My cat weighs five kilos.", "The vet says my cat weighs six kilos now.", "How much does my cat weigh?"),
    ("I use Vim as my editor.", "I switched to Helix as my editor.", "Which editor do I use?"),
    ("My shoe size is 42.", "My shoe size is 43, not 42.", "What is my shoe size?"),
    ("The party is at Tom's place.", "The party is at Mia's place instead.", "Where is the party?"),
    (
        "I am allergic to penicillin.",
        "It turned out that I am not allergic to penicillin.",
        "Am I allergic to penicillin?",
    ),
    ("My email is ada@old.example.", "My email changed to ada@new.example.", "What is my email?"),
    (
        "The library card number is 1188.",
        "The library card number is 1199.",
        "What is the library card number?",
    ),
    ("My favourite band is Muse.", "My favourite band is Wilco nowadays.", "Who is my favourite band?"),
    ("The gate code is 4455.", "They changed the gate code, it is 9021.", "What is the gate code?"),
    ("My sister is engaged to Ben.", "My sister married Ben last week.", "Is my sister engaged?"),
    ("Our landlord is Mr. Ruiz.", "Our new landlord is Ms. Chen.", "Who is our landlord?"),
    (
        "I pay 30 euros for internet.",
        "I pay 45 euros for internet since January.",
        "How much do I pay for internet?",
    ),
    ("The exam takes place in room 12.", "The exam was moved to room 40.", "In which room is the exam?"),
    ("We deploy on Fridays.", "We no longer deploy on Fridays, we deploy on Tuesdays.", "When do we deploy?"),
    ("My desk is on the second floor.", "My desk is on the fifth floor now.", "On which floor is my desk?"),
    ("I teach chemistry.", "I stopped teaching chemistry, I teach physics.", "What do I teach?"),
    (
        "My blood pressure is 140 over 90.",
        "My blood pressure went down to 125 over 80.",
        "What is my blood pressure?",
    ),
    (
        "The course costs 200 dollars.",
        "The course costs 250 dollars after the change.",
        "How much does the course cost?",
    ),
    ("My nephew is four years old.", "My nephew turned five, he is five years old.", "How old is my nephew?"),
]
"""An older statement, the newer one, and a question."""
DIFFERENT = [
    (
        "The visa for Japan takes two weeks.",
        "The visa for China takes a month.",
        "How long does the visa for Japan take?",
    ),
    ("My sister lives in Porto.", "My brother lives in Madrid.", "Where does my sister live?"),
    ("The library opens at 9.", "The pool opens at 7.", "When does the library open?"),
    ("My mother's birthday is in May.", "My father's birthday is in June.", "When is my mother's birthday?"),
    ("The red paint costs 20 euros.", "The blue paint costs 25 euros.", "How much does the red paint cost?"),
    ("Tom plays the cello.", "Mia plays the flute.", "What does Tom play?"),
    (
        "The staging server runs on port 8080.",
        "The production server runs on port 443.",
        "Which port does the staging server run on?",
    ),
    ("Camomile tea calms.", "Green tea wakes me up.", "Which tea calms?"),
    ("The bread needs 4 hours.", "The cake needs 50 minutes.", "How long does the bread need?"),
    ("My office is in Rome.", "My wife's office is in Turin.", "Where is my office?"),
    ("I met Anna in 2012.", "I met Paul in 2015.", "When did I meet Anna?"),
    (
        "The flight to Oslo leaves at 6.",
        "The flight to Paris leaves at 8.",
        "When does the flight to Oslo leave?",
    ),
    ("My first car was a Golf.", "My second car was a Polo.", "What was my first car?"),
    ("Leo is allergic to nuts.", "Mia is allergic to pollen.", "What is Leo allergic to?"),
    (
        "We used MySQL in the shop project.",
        "We used SQLite in the app project.",
        "What did we use in the shop project?",
    ),
    ("I read Dune last summer.", "I read Emma last winter.", "What did I read last summer?"),
    ("The dentist is in Elm Street.", "The pharmacy is in Oak Street.", "Where is the dentist?"),
    (
        "The figs need water twice a week.",
        "The basil needs water every day.",
        "How often do the figs need water?",
    ),
    ("Invoice 4711 is paid.", "Invoice 4712 is open.", "Is invoice 4711 paid?"),
    ("My laptop is a ThinkPad.", "My work laptop is a MacBook.", "What is my laptop?"),
    (
        "My morning train leaves at 7:10.",
        "My evening train leaves at 18:20.",
        "When does my morning train leave?",
    ),
    (
        "The front tyre needs 4 bar.",
        "The rear tyre needs 5 bar.",
        "How much pressure does the front tyre need?",
    ),
    ("My keys are in the drawer.", "My car keys are in the jacket.", "Where are my keys?"),
    (
        "The meeting with Ada is on Monday.",
        "The meeting with Bob is on Friday.",
        "When is the meeting with Ada?",
    ),
    ("I parked the car in the garage.", "I left the bike at the station.", "Where did I park the car?"),
    (
        "My password for the bank is tulip.",
        "My password for the shop is rose.",
        "What is my password for the bank?",
    ),
    ("The report is due in May.", "The second report is due in June.", "When is the report due?"),
    ("Grandma's birthday is on 3 May.", "Grandpa's birthday is on 9 July.", "When is Grandma's birthday?"),
    (
        "The kitchen is painted yellow.",
        "The bathroom is painted blue.",
        "What colour is the kitchen painted?",
    ),
    ("I like figs.", "I like figs with cheese too.", "Do I like figs?"),
]
"""The statement that is asked for, a later one about another thing, and a question."""
WITHOUT_WORDS = [
    ("Any allergies in the family?", "My daughter can't eat nuts."),
    ("dentist", "I have a tooth appointment on Friday at nine."),
    ("What pet do I own?", "Rex barked all night again, the neighbours hate us."),
    ("Which vehicle does he drive?", "Tom just bought a red Toyota."),
    ("How do I parse spreadsheets?", "Call pandas read_csv with the right separator."),
    ("my job", "I work as a nurse in the children's ward."),
    ("Where do we live?", "Our flat is on the third floor in the centre of Porto."),
    ("food preferences", "I never touch meat or fish, only vegetables."),
    ("When is the wedding?", "Anna and Paul get married on the ninth of June."),
    ("holiday plans", "We fly to Crete in August for two weeks."),
    ("What hurts?", "My back has been killing me since Monday."),
    ("spouse", "My husband's name is Karl."),
    ("budget", "I can spend at most 800 euros on it."),
    ("musical instrument", "I practise the cello every evening."),
    ("sourdough problem", "The loaf came out flat and dense again."),
    ("How old is the kid?", "Mia turned seven last week."),
    ("Which programming language do we prefer?", "The whole backend is written in Rust now."),
    ("medication", "The doctor told me to take two pills of ibuprofen a day."),
    ("exercise routine", "I jog five kilometres before breakfast."),
    ("favourite colour", "I painted everything in turquoise because I love it."),
    ("phone number", "You can call me on 555 0199."),
    ("time zone", "We are six hours behind London."),
    ("university degree", "She studied physics in Zurich."),
    ("transport to the office", "I take the tram number 9 each morning."),
    ("How do I undo the last commit?", "git reset HEAD~1 brings it back to the working tree."),
    ("drinks", "No coffee for me, I only have herbal tea."),
    ("sleep", "I wake up at three every night and lie there for hours."),
    ("moving house", "The removal van comes on Saturday."),
    ("siblings", "My brother lives in Canada, my sister in Peru."),
    ("deadline", "The report must be handed in by Thursday noon."),
    ("Who is the boss?", "Ms. Keller runs the department."),
    ("gardening", "The tomatoes have brown spots on their leaves."),
    ("camera", "I shoot with a Nikon and a 50 mm lens."),
    ("fear", "I panic whenever I see a spider."),
    ("language learning", "I am on lesson twelve of my Spanish course."),
    ("weather there", "It rained all week in Bergen."),
    ("movie night", "We watched Alien with the kids, a bad idea."),
    ("flight", "My plane to Oslo leaves at six in the morning."),
    ("religion", "We go to church every Sunday."),
    ("injury", "She broke her arm on the ski slope."),
    ("server crash", "The container was killed because it ran out of memory."),
    ("password reset", "I can't log in to my account any more."),
    ("gift idea", "Mum would love a scarf."),
    ("recipe with eggs", "Beat three yolks into the cream for the carbonara."),
    ("insurance", "They refuse to pay for the water damage."),
    ("unit tests", "pytest fails on the second assertion."),
    ("anniversary", "On 4 May we will have been together for ten years."),
    ("school", "Leo starts first grade in autumn."),
    ("stress at work", "My manager piles more and more tasks on me."),
    ("tax return", "The authorities want 1,200 euros back from me."),
]
"""Questions and statements that share no word."""
OTHERS = [
    "How do I read a CSV file?",
    "What should I cook tonight?",
    "I watched a film about whales.",
    "The weather is awful today.",
    "Can you write a poem about autumn?",
    "My knee hurts when I climb stairs.",
    "We painted the kitchen last week.",
    "What is the capital of Peru?",
    "I bought a new lamp for the desk.",
    "Explain recursion to me.",
    "The neighbours are loud again.",
    "I need a gift for my aunt.",
    "How far is the moon?",
    "We planted tomatoes on the balcony.",
    "My bike has a flat tyre.",
    "What does idempotent mean?",
    "I read a novel about a lighthouse.",
    "Suggest a name for a cafe.",
    "The train was late yesterday.",
    "How do I remove a stain from wool?",
    "Who painted the Night Watch?",
    "I am tired of winter.",
    "Translate good morning into Greek.",
    "I lost my umbrella.",
    "What is a good tip in Japan?",
]
AT_ONCE = 9
"""The number of pairs in a conversation."""


def firsts(pairs: Sequence[Pair], embeddings: Any) -> list[str]:
    """The first hit of each question."""
    found: list[str] = []
    for start in range(0, len(pairs), AT_ONCE):
        chosen = pairs[start : start + AT_ONCE]
        memory = ChatMemory(embeddings=embeddings)
        for part in (0, 1):
            for n, pair in enumerate(chosen):
                memory.append(OTHERS[(2 * n + part) % len(OTHERS)], "Of course.")
                memory.append(pair[part], "ok")
        found += [str(memory.recall(pair[2], 1, 0)[0].node.message.content) for pair in chosen]
        memory.close()
    return found


def without_sense(number: int = 130) -> list[str]:
    """Queries of random letters."""
    rng = random.Random(5)
    return [
        " ".join("".join(rng.choices(string.ascii_lowercase, k=rng.randint(4, 8))) for _ in range(3))
        for _ in range(number)
    ]


def similarities(embeddings: Any) -> list[Line]:
    """The lines on the threshold of weak hits."""
    below = embeddings.weak_below
    asked, said = (embeddings.embed_array(list(texts)) for texts in zip(*WITHOUT_WORDS, strict=True))
    noise = np.sort(embeddings.embed_array(without_sense()) @ said.T, axis=1)[:, -5:]
    name = type(embeddings).__name__
    return [
        Line(f"{name}, the five best hits of queries without sense", f"{(noise < below).mean():.1%} weak"),
        Line(
            f"{name}, statements that share no word with their question",
            f"{((asked * said).sum(1) < below).mean():.1%} weak",
        ),
    ]


def measure() -> list[Line]:
    """The lines of the table."""
    models: list[tuple[str, Any | Literal[False]]] = [("by words", False)]
    models += [
        (model.__name__, model()) for model in (LocalEmbeddings, MultilingualEmbeddings) if model.available()
    ]
    lines: list[Line] = []
    for name, embeddings in models:
        newer = [pair[1] for pair in CORRECTED]
        right = sum(hit == text for hit, text in zip(firsts(CORRECTED, embeddings), newer, strict=True))
        lines.append(Line(f"{name}, corrected facts first", f"{right} of {len(newer)}"))
        asked = [pair[0] for pair in DIFFERENT]
        right = sum(hit == text for hit, text in zip(firsts(DIFFERENT, embeddings), asked, strict=True))
        lines.append(Line(f"{name}, the thing that is asked for first", f"{right} of {len(asked)}"))
        lines += similarities(embeddings) if embeddings else []
    return lines


if __name__ == "__main__":
    command(measure, __doc__, full=None)
