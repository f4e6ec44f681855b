SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.threadmem_blob (
    tree bigint NOT NULL,
    id bigint NOT NULL,
    kind text NOT NULL,
    data bytea NOT NULL
);
CREATE TABLE public.threadmem_chat_memory (
    owner text NOT NULL,
    id text NOT NULL,
    messages text NOT NULL,
    updated double precision NOT NULL
);
CREATE TABLE public.threadmem_checkpoint (
    tree bigint NOT NULL,
    ns text NOT NULL,
    id bytea NOT NULL,
    parent bytea,
    run text,
    refs text NOT NULL,
    kind text NOT NULL,
    data bytea NOT NULL
);
CREATE TABLE public.threadmem_document (
    key bigint NOT NULL,
    terms text NOT NULL,
    traits bigint NOT NULL,
    speaker text NOT NULL,
    "time" double precision NOT NULL
);
CREATE TABLE public.threadmem_embedding (
    key bigint NOT NULL,
    model text NOT NULL,
    vector bytea NOT NULL
);
CREATE TABLE public.threadmem_graft (
    key bigint NOT NULL,
    tree bigint NOT NULL,
    parent bigint NOT NULL
);
CREATE TABLE public.threadmem_item (
    id bigint NOT NULL,
    namespace bigint NOT NULL,
    key bytea NOT NULL,
    created double precision NOT NULL,
    updated double precision NOT NULL,
    ttl double precision,
    expires double precision,
    version bigint NOT NULL,
    value text NOT NULL
);
CREATE SEQUENCE public.threadmem_item_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.threadmem_item_id_seq OWNED BY public.threadmem_item.id;
CREATE TABLE public.threadmem_item_vector (
    item bigint NOT NULL,
    number integer NOT NULL,
    model text NOT NULL,
    vector bytea NOT NULL
);
CREATE TABLE public.threadmem_key_proof (
    owner text NOT NULL,
    proof text NOT NULL
);
CREATE TABLE public.threadmem_lexicon (
    key bigint NOT NULL,
    words tsvector NOT NULL
);
CREATE TABLE public.threadmem_lineage (
    tree bigint NOT NULL,
    seq bigint NOT NULL,
    turn bigint NOT NULL,
    thread text NOT NULL,
    hidden text NOT NULL
);
CREATE TABLE public.threadmem_message_summary (
    key bigint NOT NULL,
    title text NOT NULL,
    summary text NOT NULL
);
CREATE TABLE public.threadmem_migration (
    number integer NOT NULL,
    name text NOT NULL,
    applied double precision NOT NULL
);
CREATE TABLE public.threadmem_namespace (
    id bigint NOT NULL,
    owner text NOT NULL,
    path bytea NOT NULL
);
CREATE SEQUENCE public.threadmem_namespace_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.threadmem_namespace_id_seq OWNED BY public.threadmem_namespace.id;
CREATE TABLE public.threadmem_node (
    key bigint NOT NULL,
    tree bigint NOT NULL,
    seq bigint NOT NULL,
    parent bigint,
    message text NOT NULL,
    role text NOT NULL,
    body text NOT NULL,
    created double precision NOT NULL,
    state smallint NOT NULL,
    superseded_by bigint
);
CREATE TABLE public.threadmem_placement (
    key bigint NOT NULL,
    reason text NOT NULL,
    chances text NOT NULL,
    title text
);
CREATE TABLE public.threadmem_profile (
    tree bigint NOT NULL,
    title text,
    metadata text NOT NULL,
    archived double precision
);
CREATE TABLE public.threadmem_segment (
    id bigint NOT NULL,
    tree bigint NOT NULL,
    parent bigint
);
CREATE SEQUENCE public.threadmem_segment_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.threadmem_segment_id_seq OWNED BY public.threadmem_segment.id;
CREATE TABLE public.threadmem_selector_bias (
    owner text NOT NULL,
    new_thread double precision NOT NULL,
    going_back double precision NOT NULL,
    corrections bigint NOT NULL
);
CREATE TABLE public.threadmem_summary (
    key bigint NOT NULL,
    tree bigint NOT NULL,
    id text NOT NULL,
    rank smallint NOT NULL,
    level smallint NOT NULL,
    thread bigint NOT NULL,
    place bigint NOT NULL,
    messages bigint NOT NULL,
    started double precision NOT NULL,
    ended double precision NOT NULL,
    stale smallint NOT NULL
);
CREATE TABLE public.threadmem_summary_draft (
    tree bigint NOT NULL,
    hash text NOT NULL,
    summary text NOT NULL
);
CREATE TABLE public.threadmem_tree (
    id bigint NOT NULL,
    owner text NOT NULL,
    conversation text NOT NULL,
    scope text NOT NULL,
    tip bigint,
    system bigint,
    version bigint NOT NULL,
    epoch bigint NOT NULL,
    created double precision NOT NULL,
    sealed boolean NOT NULL,
    used double precision
);
CREATE SEQUENCE public.threadmem_tree_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.threadmem_tree_id_seq OWNED BY public.threadmem_tree.id;
CREATE TABLE public.threadmem_unit (
    key bigint NOT NULL,
    parent bigint,
    visits bigint DEFAULT 0 NOT NULL,
    last_visit bigint DEFAULT 0 NOT NULL,
    never_delete smallint DEFAULT 0 NOT NULL,
    forgotten double precision
);
CREATE TABLE public.threadmem_visit_round (
    owner text NOT NULL,
    round bigint NOT NULL
);
CREATE TABLE public.threadmem_watermark (
    tree bigint NOT NULL,
    name text NOT NULL,
    seq bigint NOT NULL,
    documents bigint NOT NULL,
    words bigint NOT NULL
);
CREATE TABLE public.threadmem_write (
    tree bigint NOT NULL,
    ns text NOT NULL,
    checkpoint bytea NOT NULL,
    task bytea NOT NULL,
    idx integer NOT NULL,
    path text NOT NULL,
    channel text NOT NULL,
    kind text NOT NULL,
    data bytea NOT NULL
);
ALTER TABLE ONLY public.threadmem_item ALTER COLUMN id SET DEFAULT nextval('public.threadmem_item_id_seq'::regclass);
ALTER TABLE ONLY public.threadmem_namespace ALTER COLUMN id SET DEFAULT nextval('public.threadmem_namespace_id_seq'::regclass);
ALTER TABLE ONLY public.threadmem_segment ALTER COLUMN id SET DEFAULT nextval('public.threadmem_segment_id_seq'::regclass);
ALTER TABLE ONLY public.threadmem_tree ALTER COLUMN id SET DEFAULT nextval('public.threadmem_tree_id_seq'::regclass);
INSERT INTO public.threadmem_blob VALUES (4, 1, '#', '\x7b226d65737361676573223a5b5b3130303636333239362c3130303636333239365d5d7d0a6d73677061636b0a9282a86d65737361676573c0a47365656e0190');
INSERT INTO public.threadmem_blob VALUES (4, 2, '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_blob VALUES (4, 3, 'msgpack', '\x01');
INSERT INTO public.threadmem_blob VALUES (4, 4, 'null', '\x');
INSERT INTO public.threadmem_blob VALUES (4, 5, '#', '\x5b5b3130303636333239362c3130303636333239375d5d');
INSERT INTO public.threadmem_blob VALUES (4, 6, 'msgpack', '\x02');
INSERT INTO public.threadmem_blob VALUES (4, 7, '#', '\x7b226d65737361676573223a5b5b3130303636333239382c3130303636333239385d5d7d0a6d73677061636b0a9282a86d65737361676573c0a47365656e0190');
INSERT INTO public.threadmem_blob VALUES (4, 8, '#', '\x5b5b3130303636333239362c3130303636333239385d5d');
INSERT INTO public.threadmem_blob VALUES (4, 9, 'msgpack', '\x01');
INSERT INTO public.threadmem_blob VALUES (4, 10, 'null', '\x');
INSERT INTO public.threadmem_blob VALUES (4, 11, '#', '\x5b5b3130303636333239362c3130303636333239395d5d');
INSERT INTO public.threadmem_blob VALUES (4, 12, 'msgpack', '\x02');
INSERT INTO public.threadmem_blob VALUES (6, 1, '#', '\x7b226d65737361676573223a5b5b3133343231373732382c3133343231373732385d5d7d0a6d73677061636b2b73747265616d0a1dc3687fe8c6047f512df5b4232e074f39c85df95a31d0eac608f8edde213d212904929d2722f802720a73dcbe6980aed14d6cf506dba330fb418ba776211141b7fef9');
INSERT INTO public.threadmem_blob VALUES (6, 2, '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_blob VALUES (6, 3, 'msgpack+stream', '\xaa68381809f9bac8e1afadf1663c80d308ab4fba67f46263bdd5adac99f3976fa70c6670993f0f27f7de56ca682d27030d');
INSERT INTO public.threadmem_blob VALUES (6, 4, 'null+stream', '\x81d67b7af12d2985f4637ab69e5c99495d4124a65eb034491ee562525c4dd31c48fea88a85334787792da80b2c960e00');
INSERT INTO public.threadmem_blob VALUES (6, 5, '#', '\x5b5b3133343231373732382c3133343231373732395d5d');
INSERT INTO public.threadmem_blob VALUES (6, 6, 'msgpack+stream', '\x14e33ce510baf26d62132b1b8fadfeb31dedc7aec4bb6ccc8401ba59934c23f0877a0440072ca95e1c27f821c54ed43795');
INSERT INTO public.threadmem_chat_memory VALUES ('ada', 'window', '[[null, "{\"type\":\"system\",\"data\":{\"content\":\"Be kind.\"}}"], [null, "{\"type\":\"human\",\"data\":{\"content\":\"Hello\"}}"]]', 1795862800.4798732);
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb18fe4f76673bfffeda97bf4e846', NULL, NULL, '[1]', 'msgpack', '\x939504d920323032362d31312d32385431303a34363a34302e3335353839342b30303a303081a95f5f73746172745f5f0181a95f5f696e7075745f5f8091a95f5f73746172745f5f8083a6736f75726365a5696e707574a473746570ffa7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb18fe5186a34800016ebfad34743', '\x1f1eb18fe4f76673bfffeda97bf4e846', NULL, '[0,2,3,4]', 'msgpack', '\x939504d920323032362d31312d32385431303a34363a34302e3336393439332b30303a303084a95f5f73746172745f5f02a86d6573736167657302a47365656e02af6272616e63683a746f3a6d6f64656c0282a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f0193af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657000a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb18fe53263a98001d67123c0ffb3', '\x1f1eb18fe5186a34800016ebfad34743', NULL, '[0,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32385431303a34363a34302e3337393937312b30303a303084a95f5f73746172745f5f02a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0292a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657001a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb18fe5796659800243078c8342f7', '\x1f1eb18fe53263a98001d67123c0ffb3', NULL, '[7,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32385431303a34363a34302e3430393132362b30303a303084a95f5f73746172745f5f04a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0291a95f5f73746172745f5f8083a6736f75726365a5696e707574a47374657002a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb18fe58f657e80039fcbdeb50451', '\x1f1eb18fe5796659800243078c8342f7', NULL, '[0,8,9,10]', 'msgpack', '\x939504d920323032362d31312d32385431303a34363a34302e3431383131332b30303a303084a95f5f73746172745f5f05a86d6573736167657305a47365656e05af6272616e63683a746f3a6d6f64656c0583a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0293af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657003a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb18fe5906d028004f249a16a3652', '\x1f1eb18fe58f657e80039fcbdeb50451', NULL, '[0,11,12,0]', 'msgpack', '\x939504d920323032362d31312d32385431303a34363a34302e3431383733302b30303a303084a95f5f73746172745f5f05a86d6573736167657306a47365656e06af6272616e63683a746f3a6d6f64656c0683a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0592a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657004a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eb18fe7a963abbfffc946e268c0f9', NULL, NULL, '[1]', 'msgpack+stream', '\x9c18aef86d39c0ddff3fe7915da17449b313c892a65d4f24fcd315c8ca5459e26b7976555a33e1df97122789de62ab315b7ad5e1f94eb431206fa7e8a3f17ef0db457046cb0ba7d9988f11e349f661c09a49518c39ce92969b9df9695d66c502afaac361eeb7dd54deafb28087f0cccdf8b7582ce133fcd34cd6d9b980ec064dee41bf2dae67836eb484daccf62781f431d97a50fce7');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eb18fe7ba678b8000811aed1f651c', '\x1f1eb18fe7a963abbfffc946e268c0f9', NULL, '[0,2,3,4]', 'msgpack+stream', '\xb9fc6875006db443b4d4fa5c04347699de49f777b45920a70e9e082d3ff83af641e98692918b79b2441f007e791b9c1b876ba79495d6e249f48e007b577725982154523397fc23a91da9dd22492a166d232d0da066561c864aef96a8773abd031199627bb51cd67bead23b2922904cb563cf22ed75db34bbb72da136ac0d68b1cdbca5eb03a01430796c8f581b6e58ef96d107d960f45303deabe1f9b324a42468ed6ede4ec820e32aea7a3b4f6264bd157e8011aa94f7acf5c3979b3f16567de23f672d04afd1199ce4fb9d8ca7f49ccc8817b1ce6e3ff6601f3cd08dea768d');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eb18fe7bf6195800112db965dcd86', '\x1f1eb18fe7ba678b8000811aed1f651c', NULL, '[0,5,6,0]', 'msgpack+stream', '\xc79dc33af38cbfcde8800544f4edb787705f029e619f037915222390302fa2d459b65585e5303f02407db87187c002a76eb9a03416b10c79ae7a1e02d3461e8d15f7ad776e32f6a840d7b73ed8f8955397eb2ea94cc8891dd8b745ab0f6bbd51cae96a62891b042be2146bf6ee4ccf54b4807b6a22819abbd1dd19052a8c48b7d68937a3c7f6d5be8ea039db0a75a6522ec3a2722a319faf79731d0ec31b6e1d827d5d09d7753e1c2274dd00ece5c4fe98282f4ae48501122c017866649932a7ab06f884fc74be74b4a46d9ca708a6d1b79ee181fa89cb9111ca984ec1d64321ed2dec10e5c069a0');
INSERT INTO public.threadmem_document VALUES (16777217, 'it wait', 66048, '', 1795862800.2279582);
INSERT INTO public.threadmem_document VALUES (16777218, 'and a kingfish', 66049, '', 1795862800.2440712);
INSERT INTO public.threadmem_document VALUES (16777219, 'it dive', 66048, '', 1795862800.2440712);
INSERT INTO public.threadmem_document VALUES (16777220, 'what doe bread need', 66049, '', 1795862800.2472854);
INSERT INTO public.threadmem_document VALUES (16777221, 'salt and time', 132096, '', 1795862800.2472854);
INSERT INTO public.threadmem_document VALUES (33554432, 'what doe bread need', 66049, '', 1795862800.2472854);
INSERT INTO public.threadmem_document VALUES (50331648, 'and an osprey', 66049, '', 1795862800.2653565);
INSERT INTO public.threadmem_document VALUES (67108864, 'user how doe a heron fish ai it wait user what doe bread need ai salt and time user and an osprey', 792577, '', 1795862800.3130672);
INSERT INTO public.threadmem_document VALUES (83886080, 'how heavi is a wren', 132097, '', 1795862800.3450775);
INSERT INTO public.threadmem_document VALUES (83886081, '', 0, '', 1795862800.3450775);
INSERT INTO public.threadmem_document VALUES (83886082, '', 0, '', 1795862800.3450775);
INSERT INTO public.threadmem_document VALUES (83886083, 'nine gram', 132104, '', 1795862800.3450775);
INSERT INTO public.threadmem_document VALUES (100663296, 'a swan', 66048, '', 1795862800.3724043);
INSERT INTO public.threadmem_document VALUES (100663297, 'about a swan', 66048, '', 1795862800.3872783);
INSERT INTO public.threadmem_document VALUES (100663298, 'a crane', 66048, '', 1795862800.4189143);
INSERT INTO public.threadmem_document VALUES (100663299, 'about a crane', 66048, '', 1795862800.4375);
INSERT INTO public.threadmem_embedding VALUES (16777217, 'words', '\x301f18b10da502b18d27382ea72c212a54b2a431b98d5cacbcb38d2e64a88a2d7a317ea91e2ef49ac62ab0a917a484a6fd2f8bb06dadfdac97b50daf399ecfb0eeac4c31612d5596b1aefbb28f3090aa822d3735de31852d38265a2ddaae19309fb21725aa2bae27c72bc62a6cb0952e723195a64e31a8adb928a996cc280eb4');
INSERT INTO public.threadmem_embedding VALUES (16777218, 'words', '\xc12b912bda31192896acb8aef6aebd2da9ac0d2f0cb3dc3176ad35218e2b252eff32f0a15420443184af17a74ba3f9ac0eae92b381b11f3100afdb2a79a3f2b0812eaaa5f82e1fa858310498e7b3f4284e2cc1ae3e2e6cae7c2edfa5042768b03cb156256f34a4ae3baf2dac43b03232682f07b2972d14b452b0b32b82a52c32');
INSERT INTO public.threadmem_embedding VALUES (16777219, 'words', '\xfeb1bc2ac8b109ac02a7bc3073b035b047b04031572dd0abb5b13c2441aa262cd22d6321ec306bb02b32d0a8f2ac01ab2d2f97b388b197abe8b467ae1c30742469309d9c4aabb8b0f8acaab1d9266426462d6030dd334bab4aae0a21c0b02d2f41b316274cb0d42f8f2d7a313aae1d2d8d324aa62e2ff62d2e2e84af0828e72d');
INSERT INTO public.threadmem_embedding VALUES (16777220, 'words', '\x9cadcdb46c305bb0903482285cb020275e2ca7abbdb2402021a077306d2f0eae702cb630a12c6aae46ae1cb06aad76b4642f3faee7abe0283aa6ef2a7ab2e0adafb48031d0b0492ae4233e275dac59b2b6259eab2b32d1a73b346530243143a8a230bdadaab0332cff2363a52ea975a478aeb529db26e62b0d2b7d28bf28ef2e');
INSERT INTO public.threadmem_embedding VALUES (16777221, 'words', '\x25a57a9ae5260d1dffb16cb1cdb0932c9530cd2df2b16a1b15af44a2052fd52ea6ae9f2d5caac02d7a2cac2c2c3239ae13b248b2d1ae0725d7a7baad2030912c132e1bb43132d2b00eb073b06bb1f1a978b03bb590af052cbdacfe29642d38b295b1b42dff2d81b03828bf3421279ba2102d9f2a6c2a33ac3eb17da5f39d7e2d');
INSERT INTO public.threadmem_embedding VALUES (33554432, 'words', '\x9cadcdb46c305bb0903482285cb020275e2ca7abbdb2402021a077306d2f0eae702cb630a12c6aae46ae1cb06aad76b4642f3faee7abe0283aa6ef2a7ab2e0adafb48031d0b0492ae4233e275dac59b2b6259eab2b32d1a73b346530243143a8a230bdadaab0332cff2363a52ea975a478aeb529db26e62b0d2b7d28bf28ef2e');
INSERT INTO public.threadmem_embedding VALUES (50331648, 'words', '\xcbae7126e52d11a81931d1ac3e2d59a6cb30862e5a259eb0c3a54735381fa42d6ea0db28342fac27a530b8a47b345f9fb9b39eb1cdb21b2b2eb06ab2a2997eb2c530deae08ac10acdfad7bb0f3b2243066b137ae08a8a6b0222ad9ac562be1b51a2dfb28e62c2123f52b2ea67bacb831bc2a68ac1a2957a9942b151f592a2a2d');
INSERT INTO public.threadmem_embedding VALUES (67108864, 'words', '\xdca784b5ab34c9a96b3399a9e9af4ba80c2fb2a8d0b142309faadc32751b802d2a305831e81fc6aaf9ac9baf482bb8b3002726b47fb2cd9c6eaf412e1127f2b0cfae70225d2326ac4d3018b145a48cb092aa57a7ce2c9a21cd313529292fe5b1d32cedb218aa3931d3a9712c2cafdaa4bd2b0d2f72aaccac57a8b0a7402bb5af');
INSERT INTO public.threadmem_embedding VALUES (83886080, 'words', '\xf229382f3522dd2cafae20a7ac2655ac692a9c27c3afe8a970b0510b68acfa315e30852ff7b1c9aa83a89cb071ac49294d2ba3b33db431ab61b39431573160b13e2e5b2a00a9b9b03933d62ed92f1bb388b0862e1eaa07b2ab2e1d2a25a74aa5892fac30f72ca6b012b001b106b19430482849ade830f5ab51a23db194b39226');
INSERT INTO public.threadmem_embedding VALUES (83886083, 'words', '\x3b33fe28c39a8ea283287fb1c62b53a1beb09eafad2d9ca5f62fa1a36322e2284528c3ad15ab083003a51bb0d7ac18194229b3b0061bc6b15c28b72ab834cab095b1ceb09eae81ac7f2f6d24cc2de6af5b33e62ec02f23ac4436352ceab004a8e12a8f3351286b2b1bac93ae83af962f302a3e332430e2ab7f32b1afd0b0a9a8');
INSERT INTO public.threadmem_embedding VALUES (100663296, 'words', '\xcd34dfa8902d01a4e72af42c89a9b8aca9b0d533cdad463190ab89b0452a241d6a34d42d38b0be33579a4ca1a425442e7b30eface6314f307fb01d2dda2e75b04e2b24b0efac2c312e27b431caad0f28b9a1282e852ec4a879280128e6b0e91fec1fe3259c32f72ce81d2cb4dcafa424c0aefab27f33fdae11b268a498207d29');
INSERT INTO public.threadmem_embedding VALUES (100663297, 'words', '\xe836f0aeaba4e230f326943151acb0a418b023345bacb626583070a1f52a712bf130642849affd3016267aae4622f4305e2f9eb1622b4b9e89ae66ac1a300db06fac961a80aa5e2f172b073316a33f3172a6952bb72d6baed018882f07b380306ca63da8ee2f2b308ea04eb24bb09aacc5b176b0eb31d3b16ca85caf312a33a9');
INSERT INTO public.threadmem_embedding VALUES (100663298, 'words', '\x81271017a930f42a3dab609204ac3f9f2331ea32aeb3982a109e4dadbeadbb34e0304e2e8728433017283fb1b5a39e2cb330c6b0d9a43f2971b32f35c529e1b0cf308eadc6aeca2dfa2d1f31dc3148ae7530abac69b164b08daa55ac972d2db02330792cb32d763043b071ac4eb167ac4aaa832e7630d023452d7b99a2b2d1a4');
INSERT INTO public.threadmem_embedding VALUES (100663299, 'words', '\xe73139acf1292e3228ac212e40ad1a284a30853373b2dbaa0e31ee253bacde342b2c392a0d27c72c862a2ab3bda41030063047b37eae6bac07b22f31af2c85b00227d4251cadcc2bfd2e7032d5329528d92e40ad95b0c3b15cac9425e99ce41c682d79236628b73116b057a97eb15eb0ebaf0a30222f44acc931d2ad9cb05bad');
INSERT INTO public.threadmem_embedding VALUES (117440512, 'words', '\x73747265616d0a2d7023c44baea20e95c40cf76ac006b3834c5d165ab5ba5141fcfebd2892d9b3a05d2e650415ded8059e265f889e5299bbdceb97dea59dfdd7f82cea8798ca91ad2805b3265b119d55c70e0ffbacf0397123e9f8140bf82228b777d9796be57feb8490752d94ea0f2497b27382d47cf9dfa894e365ed62afa30b7b9569fc244a2dd56aebb34a1bddabb10f6ef765633901049f2cf90093bc6498456f2311c2a77d0297dd95bc3a1164653dc52d9f495e');
INSERT INTO public.threadmem_embedding VALUES (117440513, 'words', '\x73747265616d0a62b33daa8ac1533db98f33ae05194b70ace136ea3b581fd5dd67cfd12cf8d3e3f83ee6466ff44057d8911a3d17b89786a9d4eefa98fab3fcd88ad912e4b4877a96e0905574658042ad269e56cdee06ea7539aefe0e73398bfa8ca0862b262dafd618d9ac7decb2d7af19ff11e5a75352c525b770709ac40c92cb0edb6d5e7244da08cc76b41d01ec481ece10855891c2cfb0bc210a132616bc2f07780bc61d203689eb85deef66b2049f93fee8924458');
INSERT INTO public.threadmem_graft VALUES (16777221, 1, 33554432);
INSERT INTO public.threadmem_item VALUES (1, 1, '\x6865726f6e', 1795862800.449066, 1795862800.449066, NULL, NULL, 1, '{"legs":2,"text":"grey heron"}');
INSERT INTO public.threadmem_item VALUES (2, 2, '\x7377696674', 1795862800.4644258, 1795862800.4644258, NULL, NULL, 1, '{"legs":2,"text":"black swift"}');
INSERT INTO public.threadmem_item_vector VALUES (1, 0, 'words', '\xb4b09b2eb8aac42f9c2497325a33b52c87af5bb4353297b15e2b0db4c4ad63aa24b0153003ac48a64caebaad21a9b2aedf281c2f77262b3257ac8221c6346b32c8b1832809a8ab298e2b50b0bf2d27b150302332ada3e330a72e44a6442c4c2fa127aaafd52ea232cc310117189d832c9830bf1f321cc6a4a9206b31c529e9aa');
INSERT INTO public.threadmem_item_vector VALUES (2, 0, 'words', '\x4db196143b1e2c2766a8122dbe308b2ebeb55ca88323cdb2ebb0cface02f5baaa7ae5931d4b0c1aedcb323adb6a01eb0efa039b044af6b3152a0e2286334322b2db2062ac02c0fb102270825422db52530346f300c30ef2f9baf5720f830112793aecbae352e5b30de315d2b11a83e33bf9c4ea70f312faa0e1b2b29d52d4c28');
INSERT INTO public.threadmem_key_proof VALUES ('eve', '{"sealed":"stream","data":"tVRWUPUsLKOXg7+TPoOMOaiXl2bSwf64N4qrWDpRg0yKjRCUyhJdzTq71u2G9gFVz71MS/1WPy4OJiuCtonJ00jgO+U="}');
INSERT INTO public.threadmem_lexicon VALUES (16777217, '''it'' ''wait'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (16777218, '''a'' ''and'' ''kingfish'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (16777219, '''dive'' ''it'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (16777220, '''bread'' ''doe'' ''need'' ''what'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (16777221, '''and'' ''salt'' ''time'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (33554432, '''bread'' ''doe'' ''need'' ''what'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (50331648, '''an'' ''and'' ''osprey'' ''§ofdee430d40bd57deeac186cd'' ''§t1''');
INSERT INTO public.threadmem_lexicon VALUES (67108864, '''a'' ''ai'' ''an'' ''and'' ''bread'' ''doe'' ''fish'' ''heron'' ''how'' ''it'' ''need'' ''osprey'' ''salt'' ''time'' ''user'' ''wait'' ''what'' ''§ofdee430d40bd57deeac186cd'' ''§t2''');
INSERT INTO public.threadmem_lexicon VALUES (83886080, '''a'' ''heavi'' ''how'' ''is'' ''wren'' ''§ofdee430d40bd57deeac186cd'' ''§t3''');
INSERT INTO public.threadmem_lexicon VALUES (83886083, '''gram'' ''nine'' ''§ofdee430d40bd57deeac186cd'' ''§t3''');
INSERT INTO public.threadmem_lexicon VALUES (100663296, '''a'' ''swan'' ''§ofdee430d40bd57deeac186cd'' ''§t4''');
INSERT INTO public.threadmem_lexicon VALUES (100663297, '''a'' ''about'' ''swan'' ''§ofdee430d40bd57deeac186cd'' ''§t4''');
INSERT INTO public.threadmem_lexicon VALUES (100663298, '''a'' ''crane'' ''§ofdee430d40bd57deeac186cd'' ''§t4''');
INSERT INTO public.threadmem_lexicon VALUES (100663299, '''a'' ''about'' ''crane'' ''§ofdee430d40bd57deeac186cd'' ''§t4''');
INSERT INTO public.threadmem_message_summary VALUES (16777217, 'Waits', 'It waits.');
INSERT INTO public.threadmem_message_summary VALUES (16777221, 'Salt, time', 'Salt and time.');
INSERT INTO public.threadmem_migration VALUES (6, 'the first schema that is migrated', 1795862799.9497545);
INSERT INTO public.threadmem_migration VALUES (7, 'the expired items of a namespace are found by an index', 1795862799.9497545);
INSERT INTO public.threadmem_migration VALUES (8, 'the messages of a conversation are counted by an index', 1795862799.9497545);
INSERT INTO public.threadmem_migration VALUES (9, 'nodes have plain indexes, and tables other names', 1795862799.9497545);
INSERT INTO public.threadmem_namespace VALUES (1, 'ada', '\x626972647300776174657200');
INSERT INTO public.threadmem_namespace VALUES (2, 'ada', '\x62697264730061697200');
INSERT INTO public.threadmem_node VALUES (16777216, 1, 1, NULL, 'q1', 'human', '{"type":"human","data":{"content":"How does a heron fish?"}}', 1795862800.2279582, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777217, 1, 2, 1, 'a1', 'ai', '{"type":"ai","data":{"content":"It waits."}}', 1795862800.2279582, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777220, 1, 5, 4, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795862800.2472854, 1, 7);
INSERT INTO public.threadmem_node VALUES (33554432, 1, 7, NULL, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795862800.2472854, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777221, 1, 6, 7, 'a3', 'ai', '{"type":"ai","data":{"content":"Salt and time."}}', 1795862800.2472854, 0, NULL);
INSERT INTO public.threadmem_node VALUES (50331648, 1, 8, 2, 'q4', 'human', '{"type":"human","data":{"content":"And an osprey?"}}', 1795862800.2653565, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777218, 1, 3, 2, 'q2', 'human', '{"type":"human","data":{"content":"And a kingfisher?"}}', 1795862800.2440712, 1, 8);
INSERT INTO public.threadmem_node VALUES (16777219, 1, 4, 3, 'a2', 'ai', '{"type":"ai","data":{"content":"It dives."}}', 1795862800.2440712, 1, 8);
INSERT INTO public.threadmem_node VALUES (67108864, 2, 1, NULL, '01a221c3-a7b9-75fa-890a-fb1f0ea3a9a4', 'ai', '{"type":"ai","data":{"content":"user: How does a heron fish?\nai: It waits.\nuser: What does bread need?\nai: Salt and time.\nuser: And an osprey?","additional_kwargs":{"title":"Heron, fish, waits, bread"}}}', 1795862800.3130672, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886080, 3, 1, NULL, 'h1', 'human', '{"type":"human","data":{"content":"How heavy is a wren?"}}', 1795862800.3450775, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886081, 3, 2, 1, 'h2', 'ai', '{"type":"ai","data":{"content":"","tool_calls":[{"name":"weigh","args":{"bird":"wren"},"id":"call-1","type":"tool_call"}]}}', 1795862800.3450775, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886082, 3, 3, 2, 'h3', 'tool', '{"type":"tool","data":{"content":"9 g","tool_call_id":"call-1"}}', 1795862800.3450775, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886083, 3, 4, 3, 'h4', 'ai', '{"type":"ai","data":{"content":"Nine grams."}}', 1795862800.3450775, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663296, 4, 1, NULL, '8d4207b4-7c99-4330-98ea-0d4c6dc6f521', 'human', '{"type":"human","data":{"content":"a swan"}}', 1795862800.3724043, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663297, 4, 2, 1, '9d2efb56-695f-4d66-b927-96e474156a5c', 'ai', '{"type":"ai","data":{"content":"about a swan"}}', 1795862800.3872783, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663298, 4, 3, 2, '71ac7c31-fa98-43bf-8fd7-2153e83089af', 'human', '{"type":"human","data":{"content":"a crane"}}', 1795862800.4189143, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663299, 4, 4, 3, 'cfdfe845-cfcd-45ce-bfdc-ab51af5b53a2', 'ai', '{"type":"ai","data":{"content":"about a crane"}}', 1795862800.4375, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440512, 5, 1, NULL, 's1', 'human', '{"sealed":"stream","data":"jzKI2S0L/QZjVW+7g3mPplJWyI5BGV3FduI+6ZSCOwja/xqurDv+ZXNr3K1i8q7Ui/rYwprYEOaPAiDLNdp2kBVaQDmH1xYSeuyJXKv6p9fx8D+BSAZ7ff323UwZfaJz53AC68dhBxRLaqpK9Y70+zmdMSj8TIFZvEKc"}', 1795862800.6030164, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440513, 5, 2, 1, '01a221c3-a8db-723b-afd3-71ceea3d3829', 'ai', '{"sealed":"stream","data":"KgKK8YK806Byl5xjuv4fTtTHmVyDwyTfU4ibOtLIUgX47LCsv48NGrTrdomrM5DWbGJ4UT5bILFa375L8UnQ0mDdYBwhCJ2yORYfiVjG4bBBRuotcxLEMo2KMn/i9zjrqRO658SHFSL2d4cA70lyKVIQZtEwkZHQQ/EQH5qWA8I0c4CRyfHkEUAggZNlOoo="}', 1795862800.6030164, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217728, 6, 1, NULL, '7b0bcc97-7773-475e-9db0-560612e6c2d9', 'human', '{"sealed":"stream","data":"AH34MPwVNcYZTQtpJ4mz8sEMoo1iEn/PlkacRbSU4TdR06O4cnO6UxBGw6FaLtc2Wxk/hQE9HzVNSPqUYK/LSJEBqt726T0BfWBk0GrPmVaYGqiM0j4kagzkDYxWFq5K9HrO9Rb3rVxNjVO3OBfY7wgPemYIn89MQp+D4O9yGCpYh6lQOy+dOq/dK9goso3fn7Pc"}', 1795862800.6461456, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217729, 6, 2, 1, 'a0fccd2c-3ce7-4405-a435-1aef47464df6', 'ai', '{"sealed":"stream","data":"/tTEgFynbVGQrEoe6QFdLhEz/MCptVwyVUXwzejnc+osr422RQNOL+oLTs2nuEITDusK1K3cNvj6S72z3dnn9YFdz2qKi3mucQdlfq9/93qNKnmOU0w1hTe9Txrmm7KlDmKtcvfMMH/YZdvKoPtweqYau1De/tZPwYKhy3pbWfEK3gz2Y1NW5RnfJg+rm30+6aYoas8l"}', 1795862800.6581953, 0, NULL);
INSERT INTO public.threadmem_placement VALUES (33554432, 'moved by hand', '[]', NULL);
INSERT INTO public.threadmem_profile VALUES (1, 'Birds and bread', '{"stars": 3}', NULL);
INSERT INTO public.threadmem_segment VALUES (1, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (2, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (3, 1, 16777217);
INSERT INTO public.threadmem_segment VALUES (4, 2, NULL);
INSERT INTO public.threadmem_segment VALUES (5, 3, NULL);
INSERT INTO public.threadmem_segment VALUES (6, 4, NULL);
INSERT INTO public.threadmem_segment VALUES (7, 5, NULL);
INSERT INTO public.threadmem_segment VALUES (8, 6, NULL);
INSERT INTO public.threadmem_summary VALUES (67108864, 2, 'birds', 1, 1, 0, 1, 5, 1795862800.2279582, 1795862800.2653565, 0);
INSERT INTO public.threadmem_tree VALUES (2, 'ada', 'birds', 'summaries', NULL, NULL, 1, 0, 1795862800.30004, false, NULL);
INSERT INTO public.threadmem_tree VALUES (3, 'ada', 'tools', '', NULL, NULL, 0, 0, 1795862800.3451576, false, 1795862800.3450775);
INSERT INTO public.threadmem_tree VALUES (4, 'ada', 'graph', '', NULL, NULL, 0, 0, 1795862800.3598552, false, 1795862801);
INSERT INTO public.threadmem_tree VALUES (1, 'ada', 'birds', '', 33554432, NULL, 5, 0, 1795862800.2280061, false, 1795862801);
INSERT INTO public.threadmem_tree VALUES (5, 'eve', 'secret', '', NULL, NULL, 0, 0, 1795862800.6030724, true, 1795862800.6030164);
INSERT INTO public.threadmem_tree VALUES (6, 'eve', 'graph', '', NULL, NULL, 0, 0, 1795862800.6401148, true, 1795862801);
INSERT INTO public.threadmem_unit VALUES (16777217, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (33554432, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777221, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (50331648, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (67108864, NULL, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777216, 67108864, 0, 0, 0, 1795862800.5730693);
INSERT INTO public.threadmem_watermark VALUES (1, 'summaries:session', 8, 0, 0);
INSERT INTO public.threadmem_watermark VALUES (2, 'lexicon:english', 1, 1, 12);
INSERT INTO public.threadmem_watermark VALUES (3, 'lexicon:english', 4, 2, 4);
INSERT INTO public.threadmem_watermark VALUES (4, 'lexicon:english', 4, 4, 4);
INSERT INTO public.threadmem_watermark VALUES (2, 'vectors:words', 1, 1, 0);
INSERT INTO public.threadmem_watermark VALUES (3, 'vectors:words', 4, 2, 0);
INSERT INTO public.threadmem_watermark VALUES (4, 'vectors:words', 4, 4, 0);
INSERT INTO public.threadmem_watermark VALUES (1, 'lexicon:english', 8, 7, 8);
INSERT INTO public.threadmem_watermark VALUES (1, 'vectors:words', 8, 7, 0);
INSERT INTO public.threadmem_watermark VALUES (5, 'vectors:words', 2, 2, 0);
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe5186a34800016ebfad34743', '\x1aab3ad0a2de02165f650a855c2156ac', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe4f76673bfffeda97bf4e846', '\x7da13fc7ad67e40e33edd7d3ee349dd7', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe4f76673bfffeda97bf4e846', '\x7da13fc7ad67e40e33edd7d3ee349dd7', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe5186a34800016ebfad34743', '\x1aab3ad0a2de02165f650a855c2156ac', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239372c3130303636333239375d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe4f76673bfffeda97bf4e846', '\x7da13fc7ad67e40e33edd7d3ee349dd7', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe5796659800243078c8342f7', '\x2f0de518bf3f991aa2a010930283a96f', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe5796659800243078c8342f7', '\x2f0de518bf3f991aa2a010930283a96f', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe5796659800243078c8342f7', '\x2f0de518bf3f991aa2a010930283a96f', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239382c3130303636333239385d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe58f657e80039fcbdeb50451', '\x1c4873c46b99f2eb05351b3a3e30f9b5', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb18fe58f657e80039fcbdeb50451', '\x1c4873c46b99f2eb05351b3a3e30f9b5', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239392c3130303636333239395d5d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb18fe7ba678b8000811aed1f651c', '\xcb83bf54a2427db957ef124778687357', 1, '~__pregel_pull, model', 'seen', 'msgpack+stream', '\xbccd3484a9f4f7a25fc5d6047cbfd8a79ace73df8c09ea50353e1d96c9bc833720db61986df625d216ba50726b76fc688b');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb18fe7a963abbfffc946e268c0f9', '\x5fb8a25cc5b1116945ccb7bc09a89ae3', 1, '~__pregel_pull, __start__', 'seen', 'msgpack+stream', '\xda294ac3d5aa16930b2e04dd7b47adad0b48fbf48ca9be566b6a00d873ddf809138381ef29ed2c2288e46f9266b5b04251');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb18fe7a963abbfffc946e268c0f9', '\x5fb8a25cc5b1116945ccb7bc09a89ae3', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null+stream', '\x9b1e5302c653b47a44239d8e62e068309973820f717694cbd0146fa908e2939cbf9934520d7c553e1764cae9c8f37974');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb18fe7a963abbfffc946e268c0f9', '\x5fb8a25cc5b1116945ccb7bc09a89ae3', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb18fe7ba678b8000811aed1f651c', '\xcb83bf54a2427db957ef124778687357', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3133343231373732392c3133343231373732395d5d');
SELECT pg_catalog.setval('public.threadmem_item_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_namespace_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_segment_id_seq', 8, true);
SELECT pg_catalog.setval('public.threadmem_tree_id_seq', 6, true);
ALTER TABLE ONLY public.threadmem_blob
    ADD CONSTRAINT threadmem_blob_pkey PRIMARY KEY (tree, id);
ALTER TABLE ONLY public.threadmem_chat_memory
    ADD CONSTRAINT threadmem_chat_memory_pkey PRIMARY KEY (owner, id);
ALTER TABLE ONLY public.threadmem_checkpoint
    ADD CONSTRAINT threadmem_checkpoint_pkey PRIMARY KEY (tree, ns, id);
ALTER TABLE ONLY public.threadmem_document
    ADD CONSTRAINT threadmem_document_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_embedding
    ADD CONSTRAINT threadmem_embedding_pkey PRIMARY KEY (key, model);
ALTER TABLE ONLY public.threadmem_graft
    ADD CONSTRAINT threadmem_graft_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_item
    ADD CONSTRAINT threadmem_item_key UNIQUE (namespace, key);
ALTER TABLE ONLY public.threadmem_item
    ADD CONSTRAINT threadmem_item_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_item_vector
    ADD CONSTRAINT threadmem_item_vector_pkey PRIMARY KEY (item, number);
ALTER TABLE ONLY public.threadmem_key_proof
    ADD CONSTRAINT threadmem_key_proof_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.threadmem_lexicon
    ADD CONSTRAINT threadmem_lexicon_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_lineage
    ADD CONSTRAINT threadmem_lineage_pkey PRIMARY KEY (tree, seq);
ALTER TABLE ONLY public.threadmem_lineage
    ADD CONSTRAINT threadmem_lineage_turn UNIQUE (tree, turn);
ALTER TABLE ONLY public.threadmem_message_summary
    ADD CONSTRAINT threadmem_message_summary_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_migration
    ADD CONSTRAINT threadmem_migration_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.threadmem_namespace
    ADD CONSTRAINT threadmem_namespace_path UNIQUE (owner, path);
ALTER TABLE ONLY public.threadmem_namespace
    ADD CONSTRAINT threadmem_namespace_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_node
    ADD CONSTRAINT threadmem_node_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_placement
    ADD CONSTRAINT threadmem_placement_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_profile
    ADD CONSTRAINT threadmem_profile_pkey PRIMARY KEY (tree);
ALTER TABLE ONLY public.threadmem_segment
    ADD CONSTRAINT threadmem_segment_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_selector_bias
    ADD CONSTRAINT threadmem_selector_bias_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.threadmem_summary_draft
    ADD CONSTRAINT threadmem_summary_draft_pkey PRIMARY KEY (tree, hash);
ALTER TABLE ONLY public.threadmem_summary
    ADD CONSTRAINT threadmem_summary_id UNIQUE (tree, id);
ALTER TABLE ONLY public.threadmem_summary
    ADD CONSTRAINT threadmem_summary_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_tree
    ADD CONSTRAINT threadmem_tree_name UNIQUE (owner, conversation, scope);
ALTER TABLE ONLY public.threadmem_tree
    ADD CONSTRAINT threadmem_tree_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_unit
    ADD CONSTRAINT threadmem_unit_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_visit_round
    ADD CONSTRAINT threadmem_visit_round_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.threadmem_watermark
    ADD CONSTRAINT threadmem_watermark_pkey PRIMARY KEY (tree, name);
ALTER TABLE ONLY public.threadmem_write
    ADD CONSTRAINT threadmem_write_pkey PRIMARY KEY (tree, ns, checkpoint, task, idx);
CREATE INDEX threadmem_checkpoint_run ON public.threadmem_checkpoint USING btree (run) WHERE (run IS NOT NULL);
CREATE INDEX threadmem_graft_parent ON public.threadmem_graft USING btree (tree, parent);
CREATE INDEX threadmem_item_expires ON public.threadmem_item USING btree (expires) WHERE (expires IS NOT NULL);
CREATE INDEX threadmem_item_expiry ON public.threadmem_item USING btree (namespace, expires) WHERE (expires IS NOT NULL);
CREATE INDEX threadmem_lexicon_words ON public.threadmem_lexicon USING gin (words);
CREATE INDEX threadmem_node_message ON public.threadmem_node USING btree (tree, message);
CREATE UNIQUE INDEX threadmem_node_seq ON public.threadmem_node USING btree (tree, seq);
CREATE INDEX threadmem_node_unsaid ON public.threadmem_node USING btree (tree) WHERE ((state > 0) OR ((role <> 'human'::text) AND (role <> 'ai'::text) AND (role <> 'chat'::text)));
CREATE INDEX threadmem_segment_parent ON public.threadmem_segment USING btree (tree, parent);
CREATE INDEX threadmem_tree_used ON public.threadmem_tree USING btree (owner, used, id) WHERE (used IS NOT NULL);
CREATE INDEX threadmem_unit_parent ON public.threadmem_unit USING btree (parent) WHERE (parent IS NOT NULL);
ALTER TABLE ONLY public.threadmem_blob
    ADD CONSTRAINT threadmem_blob_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_checkpoint
    ADD CONSTRAINT threadmem_checkpoint_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_graft
    ADD CONSTRAINT threadmem_graft_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_item
    ADD CONSTRAINT threadmem_item_namespace_fkey FOREIGN KEY (namespace) REFERENCES public.threadmem_namespace(id);
ALTER TABLE ONLY public.threadmem_lineage
    ADD CONSTRAINT threadmem_lineage_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_profile
    ADD CONSTRAINT threadmem_profile_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_segment
    ADD CONSTRAINT threadmem_segment_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_summary_draft
    ADD CONSTRAINT threadmem_summary_draft_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_summary
    ADD CONSTRAINT threadmem_summary_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_write
    ADD CONSTRAINT threadmem_write_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
