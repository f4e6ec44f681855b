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
INSERT INTO public.threadmem_blob VALUES (4, 2, '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_blob VALUES (4, 3, 'msgpack', '\x01');
INSERT INTO public.threadmem_blob VALUES (4, 4, 'null', '\x');
INSERT INTO public.threadmem_blob VALUES (4, 1, '#', '\x7b226d65737361676573223a5b5b3130303636333239362c3130303636333239365d5d7d0a6d73677061636b0a9282a86d65737361676573c0a47365656e0190');
INSERT INTO public.threadmem_blob VALUES (4, 5, '#', '\x5b5b3130303636333239362c3130303636333239375d5d');
INSERT INTO public.threadmem_blob VALUES (4, 6, 'msgpack', '\x02');
INSERT INTO public.threadmem_blob VALUES (4, 8, '#', '\x5b5b3130303636333239362c3130303636333239385d5d');
INSERT INTO public.threadmem_blob VALUES (4, 9, 'msgpack', '\x01');
INSERT INTO public.threadmem_blob VALUES (4, 10, 'null', '\x');
INSERT INTO public.threadmem_blob VALUES (4, 7, '#', '\x7b226d65737361676573223a5b5b3130303636333239382c3130303636333239385d5d7d0a6d73677061636b0a9282a86d65737361676573c0a47365656e0190');
INSERT INTO public.threadmem_blob VALUES (4, 11, '#', '\x5b5b3130303636333239362c3130303636333239395d5d');
INSERT INTO public.threadmem_blob VALUES (4, 12, 'msgpack', '\x02');
INSERT INTO public.threadmem_blob VALUES (7, 2, '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_blob VALUES (7, 3, 'msgpack+stream', '\x74477c3ca68f5e6a3cc66a2285d05587dfa83b427f8459ad0db20f7015011a792a484a6fb734c4399bda1c2e011c4cd26a');
INSERT INTO public.threadmem_blob VALUES (7, 4, 'null+stream', '\x7acd7ce0344ce347c5cb3fddb57fb8b792110f04764f917d858be37f9da26dac645c4dad752062515193d7b51a1dd36d');
INSERT INTO public.threadmem_blob VALUES (7, 1, '#', '\x7b226d65737361676573223a5b5b3133343231373732382c3133343231373732385d5d7d0a6d73677061636b2b73747265616d0a43c33bfe1527757a11c91a421ac503e0277815b154ae957c9e0c627b365316b416cd5fba23ba4164663d5d763514919ba1cee5efcfa02e57b4adf664435a684ab22173');
INSERT INTO public.threadmem_blob VALUES (7, 5, '#', '\x5b5b3133343231373732382c3133343231373732395d5d');
INSERT INTO public.threadmem_blob VALUES (7, 6, 'msgpack+stream', '\x9139b54a48514ab8a2cd982d0c7cca20d643eb9102ee3caa373a0e7e91205f79d23a5e4357d3a3845a022dcd02e106c518');
INSERT INTO public.threadmem_chat_memory VALUES ('ada', 'window', '[[null, "{\"type\":\"system\",\"data\":{\"content\":\"Be kind.\"}}"], [null, "{\"type\":\"human\",\"data\":{\"content\":\"Hello\"}}"]]', 1795824671.0046275);
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eac0374926a91bfff8d122c1d025b', NULL, NULL, '[1]', 'msgpack', '\x939504d920323032362d31312d32385430303a31313a31302e3733353832362b30303a303081a95f5f73746172745f5f0181a95f5f696e7075745f5f8091a95f5f73746172745f5f8083a6736f75726365a5696e707574a473746570ffa7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eac0374a8652a8000fe99b35d988d', '\x1f1eac0374926a91bfff8d122c1d025b', NULL, '[0,2,3,4]', 'msgpack', '\x939504d920323032362d31312d32385430303a31313a31302e3734343638372b30303a303084a95f5f73746172745f5f02a86d6573736167657302a47365656e02af6272616e63683a746f3a6d6f64656c0282a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f0193af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657000a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eac0374b6627e8001479147d08870', '\x1f1eac0374a8652a8000fe99b35d988d', NULL, '[0,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32385430303a31313a31302e3735303335372b30303a303084a95f5f73746172745f5f02a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0292a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657001a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eac0374f968058002819e28b241d6', '\x1f1eac0374b6627e8001479147d08870', NULL, '[7,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32385430303a31313a31302e3737373933392b30303a303084a95f5f73746172745f5f04a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0291a95f5f73746172745f5f8083a6736f75726365a5696e707574a47374657002a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eac0374ff63a380036b91b8fdde69', '\x1f1eac0374f968058002819e28b241d6', NULL, '[0,8,9,10]', 'msgpack', '\x939504d920323032362d31312d32385430303a31313a31302e3738303239302b30303a303084a95f5f73746172745f5f05a86d6573736167657305a47365656e05af6272616e63683a746f3a6d6f64656c0583a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0293af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657003a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eac0376c369da800486f2c83c548b', '\x1f1eac0374ff63a380036b91b8fdde69', NULL, '[0,11,12,0]', 'msgpack', '\x939504d920323032362d31312d32385430303a31313a31302e3936353537362b30303a303084a95f5f73746172745f5f05a86d6573736167657306a47365656e06af6272616e63683a746f3a6d6f64656c0683a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0592a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657004a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (7, '', '\x1f1eac037845696bbffffb86b341ef7e', NULL, NULL, '[1]', 'msgpack+stream', '\x331d9605390e3ceac699f479ee3fe654502b07c72e3efafdbae37a8b639b8ed3cf3d0fb755d1a7dbb66b7759cfb40da92f3fbc1ea11a0a810c94c4a844b628a51b8484e55f25125bce6fa1cc61f973b29c30bf0a9c334e3d880c66069d16ea54b59a3e676929bcf963805d5051097ad69751f9d70fc73009ed16cd045983b7e25db73baf5f350a19e5b360e73ec531068f2f06ef4c9a');
INSERT INTO public.threadmem_checkpoint VALUES (7, '', '\x1f1eac03784a69048000be5946d0c59d', '\x1f1eac037845696bbffffb86b341ef7e', NULL, '[0,2,3,4]', 'msgpack+stream', '\x37f35e14620b310170f1c232a200767bf4cd1c5da80c0112000588e6d5945dc287af0013e69e48ac6c742474e4a504cbd720ca77e61a08b4ec9248a9f8b21ee17dcaa34491156e04ce9a6efaa5033df1107079099672fefa351d6369956aae937e7279aeaf907d72cf47ac4ae2eebc554444f55c967f4e44f135411bc82491cb3aa14eb7b5f550f20f125205c02aac0ed1d20113e092b516c86728d25cd78da419b94ccd53923782967bffdc4dfd6d40c31f368a594409d03083ac255d484088ab6520a4f2d584ec38ab654952df954e010aa155ec150454982adba805a80a1f');
INSERT INTO public.threadmem_checkpoint VALUES (7, '', '\x1f1eac03784f6b438001bbaf2772899f', '\x1f1eac03784a69048000be5946d0c59d', NULL, '[0,5,6,0]', 'msgpack+stream', '\xe1a4c4b8626ea5d998fad7cbf757821e7113eb246857938d58767c23183c54e7add1a96c9eb2132500bd1eaf383bea240a145d7bea36b4165d2f070247c5006dd7c2f0157f0a635185bf5296cf45616f584c8eaef4fb078ccd50d71593d017acf485a4a23cd71e8359d2f031c01a0a8dd95606dd7acc86bbabcaa27a9192f135d2bb58651ab69c0a34b3bd1eb6196ef0bc965774c47fb8fcc937925618323beb1757ec52addbf2ab32afc69bcaf8c8f5e5063b292647f51debb5c204a08cbce333d7729353dbd6696cf3b4dcdd4c5031a4e45b970d5e015c1b0557e85bb89e04180366f66635b2cd');
INSERT INTO public.threadmem_document VALUES (16777217, 'it wait', 66048, '', 1795824670.5881443);
INSERT INTO public.threadmem_document VALUES (16777218, 'and a kingfish', 66049, '', 1795824670.6094978);
INSERT INTO public.threadmem_document VALUES (16777219, 'it dive', 66048, '', 1795824670.6094978);
INSERT INTO public.threadmem_document VALUES (16777220, 'what doe bread need', 66049, '', 1795824670.6134999);
INSERT INTO public.threadmem_document VALUES (16777221, 'salt and time', 132096, '', 1795824670.6134999);
INSERT INTO public.threadmem_document VALUES (33554432, 'what doe bread need', 66049, '', 1795824670.6134999);
INSERT INTO public.threadmem_document VALUES (50331648, 'and an osprey', 66049, '', 1795824670.6410108);
INSERT INTO public.threadmem_document VALUES (67108864, 'user how doe a heron fish ai it wait user what doe bread need ai salt and time user and an osprey', 792577, '', 1795824670.6936638);
INSERT INTO public.threadmem_document VALUES (83886080, 'how heavi is a wren', 132097, '', 1795824670.7220674);
INSERT INTO public.threadmem_document VALUES (83886081, '', 0, '', 1795824670.7220674);
INSERT INTO public.threadmem_document VALUES (83886082, '', 0, '', 1795824670.7220674);
INSERT INTO public.threadmem_document VALUES (83886083, 'nine gram', 132104, '', 1795824670.7220674);
INSERT INTO public.threadmem_document VALUES (100663296, 'a swan', 66048, '', 1795824670.7563097);
INSERT INTO public.threadmem_document VALUES (100663297, 'about a swan', 66048, '', 1795824670.7673547);
INSERT INTO public.threadmem_document VALUES (100663298, 'a crane', 66048, '', 1795824670.9717956);
INSERT INTO public.threadmem_document VALUES (100663299, 'about a crane', 66048, '', 1795824670.9828873);
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
INSERT INTO public.threadmem_embedding VALUES (117440512, 'words', '\x73747265616d0ab20a650db52a4b75e693b735354a253da40091f7605eae4a87aa2ad093f814c1fd7f71e6d4797a58e401c00b6212cdd566bdbe4bd02e166e86e32b804fd33ef52ba66f51f096c9849f3a476ce50b48c9ff75c3df82142235b0151bfc58ecea3e26df274f7bca7e34b61b72fb7983c2acdb6e5dc0787373c17356ebf2fd8d6056e93d5fe9bc20fdb1c3aec24c2337d81fd478144dc7da8228da4d85e762c2a6ccdf175f3b3f8633fb227f8277e6b00153');
INSERT INTO public.threadmem_embedding VALUES (117440513, 'words', '\x73747265616d0a049ef70deea65178e70e8d920e7071f072c75a45ce130b7fb16949f74469370a2ce6b0f516ce53d45033d9670102f063392bce992fac680ac60769aca1fe4a63630c25b1bfbe8b63630fb7bb8a4749d2ead93a4b8182eccfd4e123604ef9754f213ecc4bf8b45d8b5bcd1fb5cf69971c015bc224d485adef3e26e05e77e9e211b7dcb948e2f1eb401179dc6a4af6353f52e5d1554a20b4ae26a61988fc3e56e86fc0e33fd1591ff66cc1e806d84fd923');
INSERT INTO public.threadmem_graft VALUES (16777221, 1, 33554432);
INSERT INTO public.threadmem_item VALUES (1, 1, '\x6865726f6e', 1795824670.9887073, 1795824670.9887073, NULL, NULL, 1, '{"legs":2,"text":"grey heron"}');
INSERT INTO public.threadmem_item VALUES (2, 2, '\x7377696674', 1795824670.9963126, 1795824670.9963126, NULL, NULL, 1, '{"legs":2,"text":"black swift"}');
INSERT INTO public.threadmem_item_vector VALUES (1, 0, 'words', '\xb4b09b2eb8aac42f9c2497325a33b52c87af5bb4353297b15e2b0db4c4ad63aa24b0153003ac48a64caebaad21a9b2aedf281c2f77262b3257ac8221c6346b32c8b1832809a8ab298e2b50b0bf2d27b150302332ada3e330a72e44a6442c4c2fa127aaafd52ea232cc310117189d832c9830bf1f321cc6a4a9206b31c529e9aa');
INSERT INTO public.threadmem_item_vector VALUES (2, 0, 'words', '\x4db196143b1e2c2766a8122dbe308b2ebeb55ca88323cdb2ebb0cface02f5baaa7ae5931d4b0c1aedcb323adb6a01eb0efa039b044af6b3152a0e2286334322b2db2062ac02c0fb102270825422db52530346f300c30ef2f9baf5720f830112793aecbae352e5b30de315d2b11a83e33bf9c4ea70f312faa0e1b2b29d52d4c28');
INSERT INTO public.threadmem_key_proof VALUES ('eve', '{"sealed":"stream","data":"4ZRD33Pa3aQjMRtJ8QhXWFj1W2qA+P3/xY0PWa+Zux05o9Pqfd+duafL/MsPYM14SCfSUdjN05igrqIiLwtG95glgUg="}');
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
INSERT INTO public.threadmem_migration VALUES (6, 'the first schema that is migrated', 1795824670.541691);
INSERT INTO public.threadmem_migration VALUES (7, 'the expired items of a namespace are found by an index', 1795824670.541691);
INSERT INTO public.threadmem_migration VALUES (8, 'the messages of a conversation are counted by an index', 1795824670.541691);
INSERT INTO public.threadmem_migration VALUES (9, 'nodes have plain indexes, and tables other names', 1795824670.541691);
INSERT INTO public.threadmem_namespace VALUES (1, 'ada', '\x626972647300776174657200');
INSERT INTO public.threadmem_namespace VALUES (2, 'ada', '\x62697264730061697200');
INSERT INTO public.threadmem_node VALUES (16777216, 1, 1, NULL, 'q1', 'human', '{"type":"human","data":{"content":"How does a heron fish?"}}', 1795824670.5881443, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777217, 1, 2, 1, 'a1', 'ai', '{"type":"ai","data":{"content":"It waits."}}', 1795824670.5881443, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777220, 1, 5, 4, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795824670.6134999, 1, 7);
INSERT INTO public.threadmem_node VALUES (33554432, 1, 7, NULL, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795824670.6134999, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777221, 1, 6, 7, 'a3', 'ai', '{"type":"ai","data":{"content":"Salt and time."}}', 1795824670.6134999, 0, NULL);
INSERT INTO public.threadmem_node VALUES (50331648, 1, 8, 2, 'q4', 'human', '{"type":"human","data":{"content":"And an osprey?"}}', 1795824670.6410108, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777218, 1, 3, 2, 'q2', 'human', '{"type":"human","data":{"content":"And a kingfisher?"}}', 1795824670.6094978, 1, 8);
INSERT INTO public.threadmem_node VALUES (16777219, 1, 4, 3, 'a2', 'ai', '{"type":"ai","data":{"content":"It dives."}}', 1795824670.6094978, 1, 8);
INSERT INTO public.threadmem_node VALUES (67108864, 2, 1, NULL, '01a21f7d-d7e5-7460-a768-6f9616e1fa22', 'ai', '{"type":"ai","data":{"content":"user: How does a heron fish?\nai: It waits.\nuser: What does bread need?\nai: Salt and time.\nuser: And an osprey?","additional_kwargs":{"title":"Heron, fish, waits, bread"}}}', 1795824670.6936638, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886080, 3, 1, NULL, 'h1', 'human', '{"type":"human","data":{"content":"How heavy is a wren?"}}', 1795824670.7220674, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886081, 3, 2, 1, 'h2', 'ai', '{"type":"ai","data":{"content":"","tool_calls":[{"name":"weigh","args":{"bird":"wren"},"id":"call-1","type":"tool_call"}]}}', 1795824670.7220674, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886082, 3, 3, 2, 'h3', 'tool', '{"type":"tool","data":{"content":"9 g","tool_call_id":"call-1"}}', 1795824670.7220674, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886083, 3, 4, 3, 'h4', 'ai', '{"type":"ai","data":{"content":"Nine grams."}}', 1795824670.7220674, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663296, 4, 1, NULL, '43f8c653-888d-446e-ba3e-a0fd353bdb64', 'human', '{"type":"human","data":{"content":"a swan"}}', 1795824670.7563097, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663297, 4, 2, 1, '3b57f6c9-2a2c-49f8-9b43-d2ec4c4ed0d6', 'ai', '{"type":"ai","data":{"content":"about a swan"}}', 1795824670.7673547, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663298, 4, 3, 2, '06e2f1e9-5f43-40bb-9080-0722a5ae74d4', 'human', '{"type":"human","data":{"content":"a crane"}}', 1795824670.9717956, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663299, 4, 4, 3, 'de1abf9d-39c2-4496-8b72-caaefc028d49', 'ai', '{"type":"ai","data":{"content":"about a crane"}}', 1795824670.9828873, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440512, 6, 1, NULL, 's1', 'human', '{"sealed":"stream","data":"qiPmWYkNmM08cSwPsOuTg9pSXbkDJ5lYGHrK0egWnHGwV4Fvx69D23nzFuZj4U/IvXcLHUtqROZ83w955wKyzk7bMO3wn6faiPrpGkZvqtcl5nQ8rqNHW1dxbCSHYWBtNzSviAq4HfC/8IG5/W2stji22/5DhqTcYdag"}', 1795824671.0909526, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440513, 6, 2, 1, '01a21f7d-d972-716f-b302-21eea3ea7947', 'ai', '{"sealed":"stream","data":"1ijYMyhanJW31Wl2DHtSJaipREzIROzDMWuRE3mzPt4pAaAEpXDR/vpie5Vflu9UxklOZTE4tMWHqPh65jDICr8MAbBB88SYyO5GaneCzCoe4uNgLsRtEliH6zZYOF9l32PbOB1C0zxxo1s2jLLM+cniOZirJpBja576In/h8r1HmFG7LRNx7KowB0mepQ8="}', 1795824671.0909526, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217728, 7, 1, NULL, '8ed84dd0-169e-4513-aa9b-05253e14410e', 'human', '{"sealed":"stream","data":"/zZWZGtqcdiozl3OlmTOv6BCWHkw4x8d1EF0MQCIBHiztzpzxFrSTC/B7A2zUMt7c+0q6t6LXzzznffoQKA6+TAty4wdTS1puNgtHEhg9bBsDiQDHt1amAl3h0dVTUruaRA4RdzF51cu3XZ+uHPdpG4PjOK/KJ9/qjEanWVgu9OoAah+MbbuXIqi0+DbkccPbK+S"}', 1795824671.1348794, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217729, 7, 2, 1, '46bd3b1c-fe5f-4b04-bd3f-ec7b5962a9e0', 'ai', '{"sealed":"stream","data":"GoVvVbIHZDMzc2CVZdWd9Skm2aWh5epAb5Zwh8f4iXx+GeqZW71MOePXmN4kMBXmcVkFR7PTq+RW2S1fPZ7+TG9dj6GGAAFokgnkH7ONyVFrcP/3kaHGqJIFYZxgYE2fKpEG2Le0ZDPDNkN4coH1ouN8NPB85sFnaySOar5BnsjD4A9t3Ipc33VuIvC7T122LCmyzEoP"}', 1795824671.1426606, 0, NULL);
INSERT INTO public.threadmem_placement VALUES (33554432, 'moved by hand', '[]', NULL);
INSERT INTO public.threadmem_profile VALUES (1, 'Birds and bread', '{"stars": 3}', NULL);
INSERT INTO public.threadmem_segment VALUES (1, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (2, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (3, 1, 16777217);
INSERT INTO public.threadmem_segment VALUES (4, 2, NULL);
INSERT INTO public.threadmem_segment VALUES (5, 3, NULL);
INSERT INTO public.threadmem_segment VALUES (6, 4, NULL);
INSERT INTO public.threadmem_segment VALUES (7, 6, NULL);
INSERT INTO public.threadmem_segment VALUES (8, 7, NULL);
INSERT INTO public.threadmem_summary VALUES (67108864, 2, 'birds', 1, 1, 0, 1, 5, 1795824670.5881443, 1795824670.6410108, 0);
INSERT INTO public.threadmem_tree VALUES (2, 'ada', 'birds', 'summaries', NULL, NULL, 1, 0, 1795824670.6698203, false, NULL);
INSERT INTO public.threadmem_tree VALUES (3, 'ada', 'tools', '', NULL, NULL, 0, 0, 1795824670.7221773, false, 1795824670.7220674);
INSERT INTO public.threadmem_tree VALUES (4, 'ada', 'graph', '', NULL, NULL, 0, 0, 1795824670.7371576, false, 1795824671);
INSERT INTO public.threadmem_tree VALUES (1, 'ada', 'birds', '', 33554432, NULL, 6, 0, 1795824670.5882034, false, 1795824671);
INSERT INTO public.threadmem_tree VALUES (6, 'eve', 'secret', '', NULL, NULL, 0, 0, 1795824671.09102, true, 1795824671.0909526);
INSERT INTO public.threadmem_tree VALUES (7, 'eve', 'graph', '', NULL, NULL, 0, 0, 1795824671.1249797, true, 1795824672);
INSERT INTO public.threadmem_unit VALUES (16777217, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (33554432, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777221, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (50331648, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (67108864, NULL, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777216, 67108864, 0, 0, 0, 1795824671.0654917);
INSERT INTO public.threadmem_watermark VALUES (1, 'summaries:session', 8, 0, 0);
INSERT INTO public.threadmem_watermark VALUES (2, 'lexicon:english', 1, 1, 12);
INSERT INTO public.threadmem_watermark VALUES (3, 'lexicon:english', 4, 2, 4);
INSERT INTO public.threadmem_watermark VALUES (4, 'lexicon:english', 4, 4, 4);
INSERT INTO public.threadmem_watermark VALUES (2, 'vectors:words', 1, 1, 0);
INSERT INTO public.threadmem_watermark VALUES (3, 'vectors:words', 4, 2, 0);
INSERT INTO public.threadmem_watermark VALUES (4, 'vectors:words', 4, 4, 0);
INSERT INTO public.threadmem_watermark VALUES (1, 'lexicon:english', 8, 7, 8);
INSERT INTO public.threadmem_watermark VALUES (1, 'vectors:words', 8, 7, 0);
INSERT INTO public.threadmem_watermark VALUES (6, 'vectors:words', 2, 2, 0);
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374926a91bfff8d122c1d025b', '\x7415247335a69e15d593f75cb95fba74', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374926a91bfff8d122c1d025b', '\x7415247335a69e15d593f75cb95fba74', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374a8652a8000fe99b35d988d', '\x3848147eb928f23a6c51273046da2b6e', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374926a91bfff8d122c1d025b', '\x7415247335a69e15d593f75cb95fba74', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374a8652a8000fe99b35d988d', '\x3848147eb928f23a6c51273046da2b6e', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239372c3130303636333239375d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374f968058002819e28b241d6', '\x4e72d033e34c3be4ac4d82ed0beeb0a1', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374f968058002819e28b241d6', '\x4e72d033e34c3be4ac4d82ed0beeb0a1', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374ff63a380036b91b8fdde69', '\x5ea9ac9741145e763ae9015c8cd7ccc1', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374f968058002819e28b241d6', '\x4e72d033e34c3be4ac4d82ed0beeb0a1', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239382c3130303636333239385d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eac0374ff63a380036b91b8fdde69', '\x5ea9ac9741145e763ae9015c8cd7ccc1', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239392c3130303636333239395d5d');
INSERT INTO public.threadmem_write VALUES (7, '', '\x1f1eac03784a69048000be5946d0c59d', '\x66343d76c1dfa91435f54e96d4e26d4b', 1, '~__pregel_pull, model', 'seen', 'msgpack+stream', '\xf2f413e6f1d091782be18fe14efa394abc111d158a66a6d18a081bdf84d34c37dd2b4ac4ffa626a80719a468c58c4a0265');
INSERT INTO public.threadmem_write VALUES (7, '', '\x1f1eac037845696bbffffb86b341ef7e', '\xdeb84ed4473cda984c73a908f2a3d906', 1, '~__pregel_pull, __start__', 'seen', 'msgpack+stream', '\xc2ab91e76d491e51a75463cdbb0db015581f8ce4e06077bb38674a8600397fd3a9be68ce8fdfcee6ee364537a186de19fc');
INSERT INTO public.threadmem_write VALUES (7, '', '\x1f1eac037845696bbffffb86b341ef7e', '\xdeb84ed4473cda984c73a908f2a3d906', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null+stream', '\x45f1206fb5c3f35d57bafcc3ea3132f27df25702280a19300c7c6e655aae41bb891df90a97a00ec4b2b122f37fa20940');
INSERT INTO public.threadmem_write VALUES (7, '', '\x1f1eac037845696bbffffb86b341ef7e', '\xdeb84ed4473cda984c73a908f2a3d906', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_write VALUES (7, '', '\x1f1eac03784a69048000be5946d0c59d', '\x66343d76c1dfa91435f54e96d4e26d4b', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3133343231373732392c3133343231373732395d5d');
SELECT pg_catalog.setval('public.threadmem_item_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_namespace_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_segment_id_seq', 8, true);
SELECT pg_catalog.setval('public.threadmem_tree_id_seq', 9, true);
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
CREATE INDEX threadmem_node_unsaid ON public.threadmem_node USING btree (tree) WHERE ((state > 0) OR (role <> ALL (ARRAY['human'::text, 'ai'::text, 'chat'::text])));
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
