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
INSERT INTO public.threadmem_blob VALUES (6, 1, '#', '\x7b226d65737361676573223a5b5b3133343231373732382c3133343231373732385d5d7d0a6d73677061636b2b73747265616d0acf74b4d9671efc6424b71120bacb5408a7986305cdf15c2c97b1563b1a20c18bc89b171eff27f61d96c8385761d3d829ae3cf8f0d16e3a63acb8ae2001bfe5b54e6a18');
INSERT INTO public.threadmem_blob VALUES (6, 2, '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_blob VALUES (6, 3, 'msgpack+stream', '\xb63de9fb7042b6c4c4e44299af7f7628e09d2b31a29a08c8e71bc0e1280b8fde443a3b7fe570c2d15e0bf38032ad2c0fbc');
INSERT INTO public.threadmem_blob VALUES (6, 4, 'null+stream', '\x77f0680f3474fa21a0adb1556d4dc3ecc98f72fa46dfd97bd49b9cc88be31e35a4fc227f234d684623032f5ec3facd6f');
INSERT INTO public.threadmem_blob VALUES (6, 5, '#', '\x5b5b3133343231373732382c3133343231373732395d5d');
INSERT INTO public.threadmem_blob VALUES (6, 6, 'msgpack+stream', '\xb1f5d83b62619a0291f0f5596bff9460b58fbce99678ccb7720c4cc861a1fc52413797bcba9c0cd8f4f6843d0c69f09e13');
INSERT INTO public.threadmem_chat_memory VALUES ('ada', 'window', '[[null, "{\"type\":\"system\",\"data\":{\"content\":\"Be kind.\"}}"], [null, "{\"type\":\"human\",\"data\":{\"content\":\"Hello\"}}"]]', 1795873042.5902293);
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb30d705e63a2bfffabd971699887', NULL, NULL, '[1]', 'msgpack', '\x939504d920323032362d31312d32385431333a33373a32322e3336343036332b30303a303081a95f5f73746172745f5f0181a95f5f696e7075745f5f8091a95f5f73746172745f5f8083a6736f75726365a5696e707574a473746570ffa7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb30d70786afe80001b9e256a9c7e', '\x1f1eb30d705e63a2bfffabd971699887', NULL, '[0,2,3,4]', 'msgpack', '\x939504d920323032362d31312d32385431333a33373a32322e3337343931352b30303a303084a95f5f73746172745f5f02a86d6573736167657302a47365656e02af6272616e63683a746f3a6d6f64656c0282a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f0193af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657000a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb30d708569a58001a6daa78f596a', '\x1f1eb30d70786afe80001b9e256a9c7e', NULL, '[0,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32385431333a33373a32322e3338303230382b30303a303084a95f5f73746172745f5f02a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0292a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657001a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb30d71666f158002ef09c70b18dd', '\x1f1eb30d708569a58001a6daa78f596a', NULL, '[7,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32385431333a33373a32322e3437323530342b30303a303084a95f5f73746172745f5f04a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0291a95f5f73746172745f5f8083a6736f75726365a5696e707574a47374657002a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb30d716d66d88003f8a5eace291e', '\x1f1eb30d71666f158002ef09c70b18dd', NULL, '[0,8,9,10]', 'msgpack', '\x939504d920323032362d31312d32385431333a33373a32322e3437353136382b30303a303084a95f5f73746172745f5f05a86d6573736167657305a47365656e05af6272616e63683a746f3a6d6f64656c0583a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0293af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657003a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eb30d7173642f80046794a404308e', '\x1f1eb30d716d66d88003f8a5eace291e', NULL, '[0,11,12,0]', 'msgpack', '\x939504d920323032362d31312d32385431333a33373a32322e3437373535362b30303a303084a95f5f73746172745f5f05a86d6573736167657306a47365656e06af6272616e63683a746f3a6d6f64656c0683a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0592a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657004a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eb30d765169f4bfff8f71cf22a33f', NULL, NULL, '[1]', 'msgpack+stream', '\xe9956e626033fc296afb0cc9c07d9c4d820b046c0b9fccb29ffb696e8bc9698cbd0227c162f4f5820420aa41398a9d1ab263fae025dea22a5037644e513feda429eea0c93820032e0322c7190e72901685b2091f875cedec33e84f57f8b8cbe8824decee61c60a18bc8012aac218bb42e8ac2a4d28ae4bb17ade1a3eff62374ec36824be1b6edaf2ad1f6ee66b4f5fa13277e8547585');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eb30d766864cb8000711389d6b1a0', '\x1f1eb30d765169f4bfff8f71cf22a33f', NULL, '[0,2,3,4]', 'msgpack+stream', '\x664b3532e38c889946d0c57c2f49f6f2ce0b5881fdfa8e99a6fd685934c6c14de319d12102836cd930b596ac1956f633c1920425a6e5e5c8af4b441cac8c60d8b93519b2c5d43d060b99e4a65076e3fa7b20d2635dd51231709cfd1dbdb47d4802a2c6e2bf60151335d878c3e7276dbc4105d1f8b1b5d577dfa4a146af18ac0a54ace11688da00cb511f6c63788197acb05c80e8872cc948597fcf366602ac5908dbf44747358c50ab3e7318780a91514987200ebb707aeace071f85fe37683bf0653fe26cdf0dfa5d1ea682846ce17cae7ff52d4fa54802fe12a80f8a551230');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eb30d7722626b8001c6d12118955b', '\x1f1eb30d766864cb8000711389d6b1a0', NULL, '[0,5,6,0]', 'msgpack+stream', '\x2526e7ade022e9e63c23814d8fa4473796d1d161a47aeb555d4de5dadc891c793b65c2378beb1cb8ec5b12241e4a269c4c0aca6c99558f62eec0b0c9761e3e33194d61faee115a3b2731bf7dc632a58725e328b691d6dcf3cce738a891818920122eeef293b2267e019e830479e05e5583d03996a4e1ef7956f3758b675498d2dbd7f26b7ed6a82a296a56d9debc8ed745b352d4361e8a4a4e4282c1b2617825f2200a1838273d6b566ae305c7a86c5cb58a4e02262aa0f9f864d69b61671d36557f1cb5284b9fd680d451af61e09b3e7dedbabf157774c480c3af80a883c899ba881f60adbd6844');
INSERT INTO public.threadmem_document VALUES (16777217, 'it wait', 66048, '', 1795873042.0916767);
INSERT INTO public.threadmem_document VALUES (16777218, 'and a kingfish', 66049, '', 1795873042.1487525);
INSERT INTO public.threadmem_document VALUES (16777219, 'it dive', 66048, '', 1795873042.1487525);
INSERT INTO public.threadmem_document VALUES (16777220, 'what doe bread need', 66049, '', 1795873042.1581337);
INSERT INTO public.threadmem_document VALUES (16777221, 'salt and time', 132096, '', 1795873042.1581337);
INSERT INTO public.threadmem_document VALUES (33554432, 'what doe bread need', 66049, '', 1795873042.1581337);
INSERT INTO public.threadmem_document VALUES (50331648, 'and an osprey', 66049, '', 1795873042.213287);
INSERT INTO public.threadmem_document VALUES (67108864, 'user how doe a heron fish ai it wait user what doe bread need ai salt and time user and an osprey', 792577, '', 1795873042.2897778);
INSERT INTO public.threadmem_document VALUES (83886080, 'how heavi is a wren', 132097, '', 1795873042.3465211);
INSERT INTO public.threadmem_document VALUES (83886081, '', 0, '', 1795873042.3465211);
INSERT INTO public.threadmem_document VALUES (83886082, '', 0, '', 1795873042.3465211);
INSERT INTO public.threadmem_document VALUES (83886083, 'nine gram', 132104, '', 1795873042.3465211);
INSERT INTO public.threadmem_document VALUES (100663296, 'a swan', 66048, '', 1795873042.3935754);
INSERT INTO public.threadmem_document VALUES (100663297, 'about a swan', 66048, '', 1795873042.4092257);
INSERT INTO public.threadmem_document VALUES (100663298, 'a crane', 66048, '', 1795873042.4819236);
INSERT INTO public.threadmem_document VALUES (100663299, 'about a crane', 66048, '', 1795873042.500561);
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
INSERT INTO public.threadmem_embedding VALUES (117440512, 'words', '\x73747265616d0a0055616869b0ab5a9cd1def6c26be3f170c35163509a0dd9a9bd71c3d170f68e05bc3a8d5bc9c61d12451defaf2654989ad0b34a24b3c33695294204e2745d066aaea7e262f36cb4ef4664b66112e206dc2c3acd064f002cdadab065095925edfee516bcc3ed1804d14a055aa0540a9c5cf86b80731368e966a3f4b59626ffc77a1bb28829f7a3c94de394cbfff7b14d459a62d8ba39a110e9c05742bac1a8cffc3838cd999d3a6e66e38e3831d6b730');
INSERT INTO public.threadmem_embedding VALUES (117440513, 'words', '\x73747265616d0a36b90275b210e2cfa8e1c89f19da9441879433ecb987ff1ba559bee6e42fd31e6eae0592ccf304890e6d4c9a508308eb27ba0b6050faa055c0c0ceae3b3e014dcf3cdc0a88757878724f97f615fe24253447d4822f09069e72e3ff9316acafb1aad8d316d238e9bfa88a8aea7f0179ba8059d2300dc023b95dff859b182cc72dd85bd339e6b72c8b85aaedc805e848766dae30652a729290b795d97f0e005cf0ff17253e924da860999c2ff242098dfe');
INSERT INTO public.threadmem_graft VALUES (16777221, 1, 33554432);
INSERT INTO public.threadmem_item VALUES (1, 1, '\x6865726f6e', 1795873042.5138016, 1795873042.5138016, NULL, NULL, 1, '{"legs":2,"text":"grey heron"}');
INSERT INTO public.threadmem_item VALUES (2, 2, '\x7377696674', 1795873042.5404863, 1795873042.5404863, NULL, NULL, 1, '{"legs":2,"text":"black swift"}');
INSERT INTO public.threadmem_item_vector VALUES (1, 0, 'words', '\xb4b09b2eb8aac42f9c2497325a33b52c87af5bb4353297b15e2b0db4c4ad63aa24b0153003ac48a64caebaad21a9b2aedf281c2f77262b3257ac8221c6346b32c8b1832809a8ab298e2b50b0bf2d27b150302332ada3e330a72e44a6442c4c2fa127aaafd52ea232cc310117189d832c9830bf1f321cc6a4a9206b31c529e9aa');
INSERT INTO public.threadmem_item_vector VALUES (2, 0, 'words', '\x4db196143b1e2c2766a8122dbe308b2ebeb55ca88323cdb2ebb0cface02f5baaa7ae5931d4b0c1aedcb323adb6a01eb0efa039b044af6b3152a0e2286334322b2db2062ac02c0fb102270825422db52530346f300c30ef2f9baf5720f830112793aecbae352e5b30de315d2b11a83e33bf9c4ea70f312faa0e1b2b29d52d4c28');
INSERT INTO public.threadmem_key_proof VALUES ('eve', '{"sealed":"stream","data":"RiNrSJN6Ulq92yDTSNTF1N4MT85C6V+x/TmmIEixcrRkecDZG+z4w+jD965/RKofG0rnZTzkgx1euAbsLZkV2hus5WQ="}');
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
INSERT INTO public.threadmem_migration VALUES (6, 'the first schema that is migrated', 1795873041.9490733);
INSERT INTO public.threadmem_migration VALUES (7, 'the expired items of a namespace are found by an index', 1795873041.9490733);
INSERT INTO public.threadmem_migration VALUES (8, 'the messages of a conversation are counted by an index', 1795873041.9490733);
INSERT INTO public.threadmem_migration VALUES (9, 'nodes have plain indexes, and tables other names', 1795873041.9490733);
INSERT INTO public.threadmem_namespace VALUES (1, 'ada', '\x626972647300776174657200');
INSERT INTO public.threadmem_namespace VALUES (2, 'ada', '\x62697264730061697200');
INSERT INTO public.threadmem_node VALUES (16777216, 1, 1, NULL, 'q1', 'human', '{"type":"human","data":{"content":"How does a heron fish?"}}', 1795873042.0916767, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777217, 1, 2, 1, 'a1', 'ai', '{"type":"ai","data":{"content":"It waits."}}', 1795873042.0916767, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777220, 1, 5, 4, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795873042.1581337, 1, 7);
INSERT INTO public.threadmem_node VALUES (33554432, 1, 7, NULL, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795873042.1581337, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777221, 1, 6, 7, 'a3', 'ai', '{"type":"ai","data":{"content":"Salt and time."}}', 1795873042.1581337, 0, NULL);
INSERT INTO public.threadmem_node VALUES (50331648, 1, 8, 2, 'q4', 'human', '{"type":"human","data":{"content":"And an osprey?"}}', 1795873042.213287, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777218, 1, 3, 2, 'q2', 'human', '{"type":"human","data":{"content":"And a kingfisher?"}}', 1795873042.1487525, 1, 8);
INSERT INTO public.threadmem_node VALUES (16777219, 1, 4, 3, 'a2', 'ai', '{"type":"ai","data":{"content":"It dives."}}', 1795873042.1487525, 1, 8);
INSERT INTO public.threadmem_node VALUES (67108864, 2, 1, NULL, '01a2225f-ef71-73ae-8312-a4f063fb986d', 'ai', '{"type":"ai","data":{"content":"user: How does a heron fish?\nai: It waits.\nuser: What does bread need?\nai: Salt and time.\nuser: And an osprey?","additional_kwargs":{"title":"Heron, fish, waits, bread"}}}', 1795873042.2897778, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886080, 3, 1, NULL, 'h1', 'human', '{"type":"human","data":{"content":"How heavy is a wren?"}}', 1795873042.3465211, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886081, 3, 2, 1, 'h2', 'ai', '{"type":"ai","data":{"content":"","tool_calls":[{"name":"weigh","args":{"bird":"wren"},"id":"call-1","type":"tool_call"}]}}', 1795873042.3465211, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886082, 3, 3, 2, 'h3', 'tool', '{"type":"tool","data":{"content":"9 g","tool_call_id":"call-1"}}', 1795873042.3465211, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886083, 3, 4, 3, 'h4', 'ai', '{"type":"ai","data":{"content":"Nine grams."}}', 1795873042.3465211, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663296, 4, 1, NULL, 'f2c52804-eaf0-4079-ac08-5db04d353570', 'human', '{"type":"human","data":{"content":"a swan"}}', 1795873042.3935754, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663297, 4, 2, 1, '293d09fc-0807-4d98-93df-2ae3ad808199', 'ai', '{"type":"ai","data":{"content":"about a swan"}}', 1795873042.4092257, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663298, 4, 3, 2, '051812d6-4cdc-4bfd-868b-9492b29919bd', 'human', '{"type":"human","data":{"content":"a crane"}}', 1795873042.4819236, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663299, 4, 4, 3, '13d1ae43-c288-4c9e-a64a-511a710ffd52', 'ai', '{"type":"ai","data":{"content":"about a crane"}}', 1795873042.500561, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440512, 5, 1, NULL, 's1', 'human', '{"sealed":"stream","data":"wwbN99aptJ3sXJLPLAe1aha3USBpvK5R8hPdVAclIR3ps7zWDGh0EGmWWTjZAVttN/cieiXfZTkDmOXG3l8wt+33+cUxbl/8aPJq86TGMBeNe/TBfSgeiYENmkVcYmph5pnygzT2ywZB6SEbX9R0yHTAFOwgbaYDR3d1"}', 1795873042.8433583, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440513, 5, 2, 1, '01a2225f-f19b-75aa-9044-b779de54ae25', 'ai', '{"sealed":"stream","data":"8HQovd9+YCgJ6YKufiSYi7wNl+GW8VQJwK2mxPiQhSvyqt98IShlAkJ1WFfqnEZm4VUZiMNr1y2zSmDLx/53DeGUz5li9wbMO1UHNoQHEJfnZpP+Pa1Lw+9wz3VlMx3kNAzll+GN1K9U91nOFeMk35wfdm97uG+wJL/yFKkxDjIQ0RD31L4s+XKT1kjVGqA="}', 1795873042.8433583, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217728, 6, 1, NULL, '2d1c3074-ac2f-4260-9213-5ef7543208f1', 'human', '{"sealed":"stream","data":"kXV7eCYZFDHi0Ltk03xJh+n1L1t7wXdBw2LWm02w2ISPnD3MSUaPrB7FE2ch2qU8SFliwVGmtu3qQeTDSItBH+n10sngSR/mF9gY/ki9vsibPV34Ysl95xXDiBUcBq3HtFR4HClzq/RYiCH8olsa1BMm7GVTmXh7rNqYqT/AHg77rY9f4ypGNM1tT79eo2pqPUiG"}', 1795873043.1043854, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217729, 6, 2, 1, 'dbaafcc4-e7dc-4dbb-b1b8-632eec296b05', 'ai', '{"sealed":"stream","data":"TM+y03h7xaXaQEqRsk6sKpL9vIS0pmSrcvUkgKfXbdroi59NKTW9i+RNZlwpKxGK4fUwCZIJJ/T8AcL0Fge+dh4zlnrJrV+NiDo9qdZbHcz6yPraSz9DL0MnjG4gKxtSSFZBZtQ0zIzuhBRINYo1t+66zQYG7NKRVZCzz1gqBPWH12Q+o2rdwjXFXdWkr++SXou1MGBC"}', 1795873043.1220217, 0, NULL);
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
INSERT INTO public.threadmem_summary VALUES (67108864, 2, 'birds', 1, 1, 0, 1, 5, 1795873042.0916767, 1795873042.213287, 0);
INSERT INTO public.threadmem_tree VALUES (2, 'ada', 'birds', 'summaries', NULL, NULL, 1, 0, 1795873042.2493365, false, NULL);
INSERT INTO public.threadmem_tree VALUES (3, 'ada', 'tools', '', NULL, NULL, 0, 0, 1795873042.3466284, false, 1795873042.3465211);
INSERT INTO public.threadmem_tree VALUES (4, 'ada', 'graph', '', NULL, NULL, 0, 0, 1795873042.3662596, false, 1795873043);
INSERT INTO public.threadmem_tree VALUES (1, 'ada', 'birds', '', 33554432, NULL, 5, 0, 1795873042.091726, false, 1795873043);
INSERT INTO public.threadmem_tree VALUES (5, 'eve', 'secret', '', NULL, NULL, 0, 0, 1795873042.843411, true, 1795873042.8433583);
INSERT INTO public.threadmem_tree VALUES (6, 'eve', 'graph', '', NULL, NULL, 0, 0, 1795873042.9931257, true, 1795873044);
INSERT INTO public.threadmem_unit VALUES (16777217, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (33554432, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777221, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (50331648, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (67108864, NULL, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777216, 67108864, 0, 0, 0, 1795873042.7772853);
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
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d705e63a2bfffabd971699887', '\x284978f4f1d807bd7df314087be45068', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d705e63a2bfffabd971699887', '\x284978f4f1d807bd7df314087be45068', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d70786afe80001b9e256a9c7e', '\x82c7ddbe54366ece37e1847f086c93a9', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d70786afe80001b9e256a9c7e', '\x82c7ddbe54366ece37e1847f086c93a9', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239372c3130303636333239375d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d705e63a2bfffabd971699887', '\x284978f4f1d807bd7df314087be45068', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d71666f158002ef09c70b18dd', '\x9e1cc2b69b7af520991a3c611c4af503', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d71666f158002ef09c70b18dd', '\x9e1cc2b69b7af520991a3c611c4af503', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d716d66d88003f8a5eace291e', '\x185c1d6973432bd50aa2bd8488798c99', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d71666f158002ef09c70b18dd', '\x9e1cc2b69b7af520991a3c611c4af503', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239382c3130303636333239385d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eb30d716d66d88003f8a5eace291e', '\x185c1d6973432bd50aa2bd8488798c99', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239392c3130303636333239395d5d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb30d765169f4bfff8f71cf22a33f', '\xe8554e0849e6b80a0eefbc32f5084f91', 1, '~__pregel_pull, __start__', 'seen', 'msgpack+stream', '\x2475bd6f73006c7a3872ce7ac65743b615f84a84cb943802377e8b81da1eb09b28eac5983cd04a267f605afd01a80d9282');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb30d765169f4bfff8f71cf22a33f', '\xe8554e0849e6b80a0eefbc32f5084f91', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null+stream', '\x2b3379379a6280abd622730dec4d5634dc4feb451ee14739a74a39a885d5dc52b035e6750d950affd8ab1069e7e5951d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb30d766864cb8000711389d6b1a0', '\xa400468ba7cd6a1dd01a12e46c5b0b75', 1, '~__pregel_pull, model', 'seen', 'msgpack+stream', '\x88935f9484b75dffcabd1ac02666087e8c0cfb83244a1ecb99b1e423851a23b7a28d73069073c927ee1ebfae1780b418fb');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb30d766864cb8000711389d6b1a0', '\xa400468ba7cd6a1dd01a12e46c5b0b75', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3133343231373732392c3133343231373732395d5d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eb30d765169f4bfff8f71cf22a33f', '\xe8554e0849e6b80a0eefbc32f5084f91', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
SELECT pg_catalog.setval('public.threadmem_item_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_namespace_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_segment_id_seq', 8, true);
SELECT pg_catalog.setval('public.threadmem_tree_id_seq', 8, true);
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
CREATE INDEX threadmem_tree_conversation ON public.threadmem_tree USING btree (conversation);
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
