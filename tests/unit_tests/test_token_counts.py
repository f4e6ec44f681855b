"""Numbers of tokens: the counted table is within a fifth of the tokenizer `o200k_base`."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_threadmem import TokenWindow
from langchain_threadmem.messages.tokens import count_text, count_tokens

MEASURED = {
    "en": (
        "I am planning a trip to the coast next weekend and I wonder which trai"
        "n I should take. The early one leaves at half past six, which is quite"
        " hard with two children, but the later one arrives only after lunch. C"
        "ould you compare the prices and tell me whether we can take our bicycl"
        "es with us? Thanks, that would help a lot. Also, the hotel near the ha"
        "rbour asked for a confirmation before Thursday.",
        84,
    ),
    "de": (
        "Ich plane am nächsten Wochenende eine Re"
        "ise an die Küste und frage mich, welchen"
        " Zug ich nehmen soll. Der frühe fährt um"
        " halb sieben ab, was mit zwei Kindern zi"
        "emlich schwierig ist, aber der spätere k"
        "ommt erst nach dem Mittagessen an. Könnt"
        "est du die Preise vergleichen und mir sa"
        "gen, ob wir unsere Fahrräder mitnehmen k"
        "önnen?",
        70,
    ),
    "ru": (
        "Я планирую поездку на побережье в следую"
        "щие выходные и думаю, каким поездом лучш"
        "е поехать. Ранний отправляется в половин"
        "е седьмого, что довольно трудно с двумя "
        "детьми, а поздний приходит только после "
        "обеда. Не могли бы вы сравнить цены и ск"
        "азать, можно ли взять с собой велосипеды"
        "?",
        71,
    ),
    "zh": (
        "我打算下周末去海边旅行，不知道该坐哪一趟火车。早班车六点半出发，带着两个孩子实在"
        "有点困难，可是晚一点的那趟要到午饭以后才能到。你能帮我比较一下票价，再告诉我能不"
        "能带自行车上车吗？另外，港口附近的酒店要求我们在星期四之前确认预订，否则房间就会"
        "取消。谢谢你的帮助。",
        102,
    ),
    "ja": (
        "来週末に海辺へ旅行する予定ですが、どの電車に乗ればいいか迷っています。早い電車は"
        "六時半に出発しますが、子供が二人いるのでかなり大変です。遅い電車は昼食の後に到着"
        "します。料金を比較して、自転車を持ち込めるかどうか教えていただけますか。港の近く"
        "のホテルは木曜日までに予約の確認が必要だそうです。",
        109,
    ),
    "ko": (
        "다음 주말에 바닷가로 여행을 갈 계획인데 어떤 기차를 타야 할지 고민하고"
        " 있습니다. 이른 기차는 여섯 시 반에 출발해서 아이 둘과 함께라면 꽤 "
        "힘들고, 늦은 기차는 점심 식사 후에야 도착합니다. 요금을 비교하고 자전"
        "거를 가지고 탈 수 있는지 알려 주시겠어요? 항구 근처 호텔은 목요일까지"
        " 예약을 확인해 달라고 했습니다.",
        106,
    ),
    "th": (
        "ฉันกำลังวางแผนไปเที่ยวทะเลสุดสัปดาห์หน้า"
        " และสงสัยว่าควรขึ้นรถไฟขบวนไหน ขบวนแรกออ"
        "กตอนหกโมงครึ่ง ซึ่งค่อนข้างลำบากเมื่อมีเ"
        "ด็กสองคน แต่ขบวนหลังจะถึงหลังอาหารกลางวั"
        "น คุณช่วยเปรียบเทียบราคาและบอกฉันได้ไหมว"
        "่าเรานำจักรยานไปด้วยได้หรือไม่ ขอบคุณมาก",
        102,
    ),
    "hi": (
        "मैं अगले सप्ताहांत समुद्र तट की यात्रा क"
        "ी योजना बना रहा हूँ और सोच रहा हूँ कि कौ"
        "न सी ट्रेन लेनी चाहिए। पहली ट्रेन साढ़े "
        "छह बजे निकलती है, जो दो बच्चों के साथ का"
        "फी मुश्किल है, लेकिन बाद वाली दोपहर के ख"
        "ाने के बाद ही पहुँचती है। क्या आप कीमतों"
        " की तुलना करके बता सकते हैं कि हम अपनी स"
        "ाइकिलें साथ ले जा सकते हैं या नहीं?",
        87,
    ),
    "python": (
        "def find_path(graph: dict[str, list[str]], start: str, goal: str) -> l"
        'ist[str] | None:\n    """Breadth-first search."""\n    queue = deque([(s'
        "tart, [start])])\n    seen = {start}\n    while queue:\n        node, pat"
        "h = queue.popleft()\n        if node == goal:\n            return path\n "
        "       for neighbour in graph.get(node, []):\n            if neighbour "
        "not in seen:\n                seen.add(neighbour)\n                queue"
        ".append((neighbour, [*path, neighbour]))\n    return None\n",
        113,
    ),
    "json": (
        '{"id": 4812, "status": "confirmed", "customer": {"name": "Ada Meyer", '
        '"email": "ada@example.com"}, "items": [{"sku": "A-1043", "quantity": 2'
        ', "price": 19.9}, {"sku": "B-77", "quantity": 1, "price": 249.0}], "sh'
        'ipping": {"city": "Oslo", "zip": "0150", "express": true}, "created_at'
        '": "2026-03-14T09:26:53Z"}',
        120,
    ),
    "emoji": (
        "😀😂🤣😊😍🥰😘😎🤔😭🎉🔥👍🙏💯✨❤️🚀🌍🍕🍺⚽🐶🐱🌈☀️",
        41,
    ),
    "emoji-text": (
        "Great news! 🎉🎉 We got the tickets 🎫 and "
        "the hotel 🏨 is booked. See you on Friday"
        " 😊👍 Can't wait!! 🔥",
        33,
    ),
    "zh2": (
        "机器学习模型需要大量的训练数据。首先，我们把文本切分成词元，然后计算每个词元的向"
        "量表示。如果显存不足，可以降低批次大小或者使用梯度累积。请帮我检查下面这段代码为"
        "什么会报错，并且解释一下应该如何修改。",
        64,
    ),
    "ja2": (
        "機械学習のモデルを訓練するには大量のデータが必要です。まず文章をトークンに分割し"
        "、それぞれのベクトルを計算します。メモリが足りない場合は、バッチサイズを小さくし"
        "てください。次のコードがエラーになる理由を教えてください。",
        75,
    ),
    "ko2": (
        "기계 학습 모델을 훈련하려면 많은 데이터가 필요합니다. 먼저 문장을 토큰"
        "으로 나누고 각 토큰의 벡터를 계산합니다. 메모리가 부족하면 배치 크기를"
        " 줄여 보세요. 다음 코드에서 오류가 나는 이유를 설명해 주세요.",
        63,
    ),
    "th2": (
        "การฝึกโมเดลการเรียนรู้ของเครื่องต้องใช้ข"
        "้อมูลจำนวนมาก ก่อนอื่นเราจะแบ่งข้อความออ"
        "กเป็นหน่วยย่อย แล้วคำนวณเวกเตอร์ของแต่ละ"
        "หน่วย หากหน่วยความจำไม่พอ ให้ลดขนาดของชุ"
        "ดข้อมูลลง",
        59,
    ),
    "hi2": (
        "मशीन लर्निंग मॉडल को प्रशिक्षित करने के "
        "लिए बहुत सारे डेटा की आवश्यकता होती है। "
        "पहले हम पाठ को टोकन में बाँटते हैं, फिर "
        "हर टोकन का सदिश निकालते हैं। यदि मेमोरी "
        "कम पड़े तो बैच का आकार घटा दें।",
        61,
    ),
    "zh3": (
        "昨天晚上我和朋友一起吃火锅，味道特别好！不过今天早上肚子有点不舒服，你觉得是不是吃得太辣了？",
        35,
    ),
    "ja3": (
        "きのうの夜、友だちといっしょに鍋を食べました。とてもおいしかったです！でも、けさ"
        "はおなかの調子がよくありません。",
        46,
    ),
    "ko3": (
        "어제 저녁에 친구들이랑 삼겹살을 먹었는데 정말 맛있었어요! 그런데 오늘 "
        "아침부터 배가 좀 아프네요. 약을 먹어야 할까요?",
        42,
    ),
    "th3": (
        "เมื่อวานไปกินข้าวกับเพื่อน อร่อยมากเลยค่ะ แต่วันนี้ปวดท้องนิดหน่อย ควรกินยาอะไรดีคะ",
        35,
    ),
    "hi3": (
        "कल रात दोस्तों के साथ खाना खाया, बहुत मज़ा आया! लेकिन आज सुबह से पेट में थोड़ा दर्द है। क्या मुझे दवा लेनी चाहिए?",
        33,
    ),
    "ts": (
        "export interface Order { id: string; total: number; lines: OrderLine[]"
        "; createdAt: Date }\n\nexport class OrderService {\n  constructor(private"
        " readonly repo: Repository<Order>, private readonly bus: EventBus) {}\n"
        "\n  async cancel(id: string, reason?: string): Promise<void> {\n    cons"
        "t order = await this.repo.findOneOrFail({ where: { id } });\n    order."
        "status = OrderStatus.Cancelled;\n    await this.repo.save(order);\n    t"
        'his.bus.publish(new OrderCancelled(order.id, reason ?? "unknown"));\n  '
        "}\n}\n",
        112,
    ),
    "rust": (
        "fn main() -> Result<(), Box<dyn Error>> {\n    let args: Vec<String> = "
        "env::args().collect();\n    let mut counts: HashMap<String, usize> = Ha"
        "shMap::new();\n    for line in BufReader::new(File::open(&args[1])?).li"
        "nes() {\n        for word in line?.split_whitespace() {\n            *co"
        "unts.entry(word.to_lowercase()).or_insert(0) += 1;\n        }\n    }\n   "
        ' println!("{:?}", counts);\n    Ok(())\n}\n',
        107,
    ),
    "json2": (
        '[{"ts": 1764263582, "level": "ERROR", "service": "checkout", "trace_id'
        '": "9f86d081884c7d65", "message": "payment declined", "latency_ms": 18'
        '2.4, "retry": false}, {"ts": 1764263590, "level": "INFO", "service": "'
        'checkout", "trace_id": "60303ae22b998861", "message": "payment accepte'
        'd", "latency_ms": 95.1, "retry": true}]',
        116,
    ),
    "json3": (
        '{"type":"object","properties":{"query":{"type":"string","description":'
        '"The search query"},"limit":{"type":"integer","minimum":1,"maximum":10'
        '0,"default":10}},"required":["query"],"additionalProperties":false}',
        49,
    ),
    "emoji4": (
        "👍👍👍😂😂🙈🤦\u200d♂️💪🏽🔥🔥",
        18,
    ),
}
"""Texts and their numbers of tokens in `o200k_base`."""


@pytest.mark.parametrize("name", MEASURED)
def test_a_text_counts_within_a_fifth_of_its_tokens(name: str) -> None:
    text, tokens = MEASURED[name]
    assert 0.8 * tokens <= count_text(text) <= 1.2 * tokens


def test_a_window_of_a_thousand_tokens_holds_about_a_thousand_in_chinese() -> None:
    text, tokens = MEASURED["zh"]
    shown = TokenWindow(1000)([HumanMessage(text)] * 50)
    assert 800 <= len(shown) * tokens <= 1200


def test_the_arguments_of_calls_and_their_results_count() -> None:
    text, tokens = MEASURED["zh"]
    call = AIMessage("", tool_calls=[{"name": "look", "args": {"text": text}, "id": "c"}])
    result = ToolMessage(text, tool_call_id="c")
    assert 1.6 * tokens <= count_tokens([call, result]) <= 2.4 * tokens + 30
