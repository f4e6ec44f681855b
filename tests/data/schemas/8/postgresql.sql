SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.threadmem_bias (
    owner text NOT NULL,
    new_thread double precision NOT NULL,
    going_back double precision NOT NULL,
    corrections bigint NOT NULL
);
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
CREATE TABLE public.threadmem_choice (
    key bigint NOT NULL,
    reason text NOT NULL,
    chances text NOT NULL,
    title text
);
CREATE TABLE public.threadmem_digest (
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
CREATE TABLE public.threadmem_draft (
    tree bigint NOT NULL,
    hash text NOT NULL,
    summary text NOT NULL
);
CREATE TABLE public.threadmem_embedding (
    key bigint NOT NULL,
    model text NOT NULL,
    vector bytea NOT NULL
);
CREATE TABLE public.threadmem_gist (
    key bigint NOT NULL,
    terms text NOT NULL,
    traits bigint NOT NULL,
    speaker text NOT NULL,
    "time" double precision NOT NULL
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
CREATE TABLE public.threadmem_key (
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
CREATE TABLE public.threadmem_mark (
    tree bigint NOT NULL,
    name text NOT NULL,
    seq bigint NOT NULL,
    documents bigint NOT NULL,
    words bigint NOT NULL
);
CREATE TABLE public.threadmem_memory (
    owner text NOT NULL,
    round bigint NOT NULL
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
    superseded_by bigint,
    named smallint NOT NULL,
    opens smallint NOT NULL
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
CREATE TABLE public.threadmem_summary (
    key bigint NOT NULL,
    title text NOT NULL,
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
INSERT INTO public.threadmem_blob VALUES (8, 2, '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_blob VALUES (8, 3, 'msgpack+stream', '\xc6a710b8cde475178711b494254579e287b12f2c58e671fb0aefd7bed7be7bc582b04e709b6fece0a2bda6eea9dd85bf09');
INSERT INTO public.threadmem_blob VALUES (8, 4, 'null+stream', '\xf72188a2f1379c7b40500067cc29921aa9d323616ab54b33c68897655b1badc0727195f359d87b1da58744eb330cebef');
INSERT INTO public.threadmem_blob VALUES (8, 1, '#', '\x7b226d65737361676573223a5b5b3133343231373732382c3133343231373732385d5d7d0a6d73677061636b2b73747265616d0a5e085ea71ba8336b166c325235a3900d079c19f21428933bcc7156a0cc004ab11a728be3a4b7788ca3dbb8d865dc526a223eaa1109e7d931104bcb4bf1234eb2671c30');
INSERT INTO public.threadmem_blob VALUES (8, 5, '#', '\x5b5b3133343231373732382c3133343231373732395d5d');
INSERT INTO public.threadmem_blob VALUES (8, 6, 'msgpack+stream', '\xc0917cf6c454998b9135b0a2903694dd5d013a9b68f0f80f7d467df094915633eb4c287d46fefc6a698fc4f50bf0f7aafb');
INSERT INTO public.threadmem_chat_memory VALUES ('ada', 'window', '[[null, "{\"type\":\"system\",\"data\":{\"content\":\"Be kind.\"}}"], [null, "{\"type\":\"human\",\"data\":{\"content\":\"Hello\"}}"]]', 1795813902.8556275);
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eaa724d7b6566bfffac0d63620738', NULL, NULL, '[1]', 'msgpack', '\x939504d920323032362d31312d32375432313a31313a34322e3337353033372b30303a303081a95f5f73746172745f5f0181a95f5f696e7075745f5f8091a95f5f73746172745f5f8083a6736f75726365a5696e707574a473746570ffa7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eaa724e416340800032faf2b6bee0', '\x1f1eaa724d7b6566bfffac0d63620738', NULL, '[0,2,3,4]', 'msgpack', '\x939504d920323032362d31312d32375432313a31313a34322e3435363036372b30303a303084a95f5f73746172745f5f02a86d6573736167657302a47365656e02af6272616e63683a746f3a6d6f64656c0282a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f0193af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657000a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eaa724e576c518001d0fa482fced7', '\x1f1eaa724e416340800032faf2b6bee0', NULL, '[0,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32375432313a31313a34322e3436353331332b30303a303084a95f5f73746172745f5f02a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0292a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657001a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eaa724fec6a4e80026899f5bc742c', '\x1f1eaa724e576c518001d0fa482fced7', NULL, '[7,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32375432313a31313a34322e3633313135302b30303a303084a95f5f73746172745f5f04a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0291a95f5f73746172745f5f8083a6736f75726365a5696e707574a47374657002a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eaa72500a66378003e6fd98ff972e', '\x1f1eaa724fec6a4e80026899f5bc742c', NULL, '[0,8,9,10]', 'msgpack', '\x939504d920323032362d31312d32375432313a31313a34322e3634333332382b30303a303084a95f5f73746172745f5f05a86d6573736167657305a47365656e05af6272616e63683a746f3a6d6f64656c0583a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0293af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657003a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eaa7250316ad58004869a989c4825', '\x1f1eaa72500a66378003e6fd98ff972e', NULL, '[0,11,12,0]', 'msgpack', '\x939504d920323032362d31312d32375432313a31313a34322e3635393431362b30303a303084a95f5f73746172745f5f05a86d6573736167657306a47365656e06af6272616e63683a746f3a6d6f64656c0683a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0592a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657004a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (8, '', '\x1f1eaa7255fc64b6bfff8e794dee83ce', NULL, NULL, '[1]', 'msgpack+stream', '\x309cf4e5a767347b1c244a70d50dbecbc39a4159806a24133e606a98b8d9d67c606ba4666a13edd3a9bdda1c7c32d73ab85f4c315c35210755b70fe8e3ff694d974be8bb77174660780ac343dc17c1bccebc41aff9155f954f1a7e3c3b1e53c5e4a27b37e0ee591e5f5629d7b828ae21e3c0829bdb5d2f3e30c562bc883babb8067c723bb37c31aa81ecf1661f8c7a48852f96879534');
INSERT INTO public.threadmem_checkpoint VALUES (8, '', '\x1f1eaa72560962ca8000655ddaa8db17', '\x1f1eaa7255fc64b6bfff8e794dee83ce', NULL, '[0,2,3,4]', 'msgpack+stream', '\xbb5d2531c21ad78f245b9123b61f62b0841234706703e4deaa757987e3ac093fec7d658d516b89665ce43469a7959342e428f7737a03fff4e112f341a1678ac84b4704e5241ca3f478b578f5338265f450a9175972d165a87711fea9e0348fda58e1a35b799bb1738a51b92fe545ec238cf7187aab6ac5800103ed1dc31bd1b4f7de8016779758db211c0d858a51ea91a09ce3265ac36e2663d18b486cce71f595c79a14a789f211d2e48155f6e9edc69f4ba2c02f3a45c601a11ecca15f5f118c18f4cdf879024b6f36249532552ace1d782ed7b0c39d6f5d50fabb4a1910d5');
INSERT INTO public.threadmem_checkpoint VALUES (8, '', '\x1f1eaa72566968248001fd99d85e7e5e', '\x1f1eaa72560962ca8000655ddaa8db17', NULL, '[0,5,6,0]', 'msgpack+stream', '\xf2b2d9147064c29f59e5bedaf9fc3ba91debbd2d5cde3985b25775bc332d9c4faa68bc1287e914d14612f5626eea5b861758b10dad77298346f0e2806961b46e1c8e9818bbe84e3f5288aeffec2f39b2b37c9fcf87c5e885a4a69ff08c640ae1d9f885ff5a8ecb1c50752da01b4877d112a98c7674c6dcfd55f7553b1bc9f94b0101ccc825550a5b61a6463afe602a1758323273ab18cac24c096fe64ffab0fa88a92eec78b9277ac6d669beb3b4cc51941c1043dd649fc39e0ca80eea8662d3189030bd46a5ea179bfafd9dfea76c34893683783f6ea23c4724d4cb380844206c616ec62b19fc14');
INSERT INTO public.threadmem_choice VALUES (33554432, 'moved by hand', '[]', NULL);
INSERT INTO public.threadmem_digest VALUES (67108864, 2, 'birds', 1, 1, 0, 1, 5, 1795813901.7181802, 1795813901.9374192, 0);
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
INSERT INTO public.threadmem_embedding VALUES (117440512, 'words', '\x73747265616d0a384520501066d5ae806f50266384fc083d1ae1a3d10c604930d87e46bf22a836426324f97cd3b5dab6609c154ee668854997c0b0d0708f8ba7e8eb169f7f763b179c1dcbdb6770c1f1b8c7e691e45e153133b1a519776643fda0ae200a3cff5375cc7c9ad34413adf6fdfd45fece339b0b52f3aaad9bc8b34632fc327181b2f1ae9adc0341b9007af1133e0c473582bc16d3272e70a78e6d73bbe28a7c0daa5729395192647dc52278f7049d5d946b7e');
INSERT INTO public.threadmem_embedding VALUES (117440513, 'words', '\x73747265616d0a570bc88726b0cf2dac38caba4148a12e908ab337463f2324606e8394662df5e3178449ff9ffe5f37e1c2fa7f8587c30fbbf9a8badd1f0d68f4d122a60735ee3c2689b9d7e32d7448ee2903ad6f462de4630f681a27468afceb0e26bef3f779e37342772d5d0c7f3c9d4a9c4ae5f42ad847d9c861ad59056053f0b2b464b00b1874b4f8f7c4de31c266e6f4bc15e89ba7e8e4dc240edc317465ff3589a6523a8293a81ece8f89343bace0bca1b22be63e');
INSERT INTO public.threadmem_gist VALUES (16777217, 'it wait', 66048, '', 1795813901.7181802);
INSERT INTO public.threadmem_gist VALUES (16777218, 'and a kingfish', 66049, '', 1795813901.7829711);
INSERT INTO public.threadmem_gist VALUES (16777219, 'it dive', 66048, '', 1795813901.7829711);
INSERT INTO public.threadmem_gist VALUES (16777220, 'what doe bread need', 66049, '', 1795813901.816988);
INSERT INTO public.threadmem_gist VALUES (16777221, 'salt and time', 132096, '', 1795813901.816988);
INSERT INTO public.threadmem_gist VALUES (33554432, 'what doe bread need', 66049, '', 1795813901.816988);
INSERT INTO public.threadmem_gist VALUES (50331648, 'and an osprey', 66049, '', 1795813901.9374192);
INSERT INTO public.threadmem_gist VALUES (67108864, 'user how doe a heron fish ai it wait user what doe bread need ai salt and time user and an osprey', 792577, '', 1795813902.231102);
INSERT INTO public.threadmem_gist VALUES (83886080, 'how heavi is a wren', 132097, '', 1795813902.317214);
INSERT INTO public.threadmem_gist VALUES (83886081, '', 0, '', 1795813902.317214);
INSERT INTO public.threadmem_gist VALUES (83886082, '', 0, '', 1795813902.317214);
INSERT INTO public.threadmem_gist VALUES (83886083, 'nine gram', 132104, '', 1795813902.317214);
INSERT INTO public.threadmem_gist VALUES (100663296, 'a swan', 66048, '', 1795813902.5240543);
INSERT INTO public.threadmem_gist VALUES (100663297, 'about a swan', 66048, '', 1795813902.5562706);
INSERT INTO public.threadmem_gist VALUES (100663298, 'a crane', 66048, '', 1795813902.648115);
INSERT INTO public.threadmem_gist VALUES (100663299, 'about a crane', 66048, '', 1795813902.6856937);
INSERT INTO public.threadmem_graft VALUES (16777221, 1, 33554432);
INSERT INTO public.threadmem_item VALUES (1, 1, '\x6865726f6e', 1795813902.7988663, 1795813902.7988663, NULL, NULL, 1, '{"legs":2,"text":"grey heron"}');
INSERT INTO public.threadmem_item VALUES (2, 2, '\x7377696674', 1795813902.8362155, 1795813902.8362155, NULL, NULL, 1, '{"legs":2,"text":"black swift"}');
INSERT INTO public.threadmem_item_vector VALUES (1, 0, 'words', '\xb4b09b2eb8aac42f9c2497325a33b52c87af5bb4353297b15e2b0db4c4ad63aa24b0153003ac48a64caebaad21a9b2aedf281c2f77262b3257ac8221c6346b32c8b1832809a8ab298e2b50b0bf2d27b150302332ada3e330a72e44a6442c4c2fa127aaafd52ea232cc310117189d832c9830bf1f321cc6a4a9206b31c529e9aa');
INSERT INTO public.threadmem_item_vector VALUES (2, 0, 'words', '\x4db196143b1e2c2766a8122dbe308b2ebeb55ca88323cdb2ebb0cface02f5baaa7ae5931d4b0c1aedcb323adb6a01eb0efa039b044af6b3152a0e2286334322b2db2062ac02c0fb102270825422db52530346f300c30ef2f9baf5720f830112793aecbae352e5b30de315d2b11a83e33bf9c4ea70f312faa0e1b2b29d52d4c28');
INSERT INTO public.threadmem_key VALUES ('eve', '{"sealed":"stream","data":"++0VAXZ04ZntPU34i4vo5EEEzzd+XnSFQ9PtUtSfyUpiCKBpEF3gL1YZc1cGJWWAHZ6IIbeCeP0UflD/R5rIRKyAXlA="}');
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
INSERT INTO public.threadmem_mark VALUES (1, 'summaries:session', 8, 0, 0);
INSERT INTO public.threadmem_mark VALUES (2, 'lexicon:english', 1, 1, 12);
INSERT INTO public.threadmem_mark VALUES (3, 'lexicon:english', 4, 2, 4);
INSERT INTO public.threadmem_mark VALUES (4, 'lexicon:english', 4, 4, 4);
INSERT INTO public.threadmem_mark VALUES (2, 'vectors:words', 1, 1, 0);
INSERT INTO public.threadmem_mark VALUES (3, 'vectors:words', 4, 2, 0);
INSERT INTO public.threadmem_mark VALUES (4, 'vectors:words', 4, 4, 0);
INSERT INTO public.threadmem_mark VALUES (1, 'lexicon:english', 8, 7, 8);
INSERT INTO public.threadmem_mark VALUES (1, 'vectors:words', 8, 7, 0);
INSERT INTO public.threadmem_mark VALUES (7, 'vectors:words', 2, 2, 0);
INSERT INTO public.threadmem_migration VALUES (6, 'the first schema that is migrated', 1795813901.544255);
INSERT INTO public.threadmem_migration VALUES (7, 'the expired items of a namespace are found by an index', 1795813901.544255);
INSERT INTO public.threadmem_migration VALUES (8, 'the messages of a conversation are counted by an index', 1795813901.544255);
INSERT INTO public.threadmem_namespace VALUES (1, 'ada', '\x626972647300776174657200');
INSERT INTO public.threadmem_namespace VALUES (2, 'ada', '\x62697264730061697200');
INSERT INTO public.threadmem_node VALUES (16777216, 1, 1, NULL, 'q1', 'human', '{"type":"human","data":{"content":"How does a heron fish?"}}', 1795813901.7181802, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (16777217, 1, 2, 1, 'a1', 'ai', '{"type":"ai","data":{"content":"It waits."}}', 1795813901.7181802, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (16777220, 1, 5, 4, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795813901.816988, 1, 7, 1, 0);
INSERT INTO public.threadmem_node VALUES (33554432, 1, 7, NULL, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795813901.816988, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (16777221, 1, 6, 7, 'a3', 'ai', '{"type":"ai","data":{"content":"Salt and time."}}', 1795813901.816988, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (50331648, 1, 8, 2, 'q4', 'human', '{"type":"human","data":{"content":"And an osprey?"}}', 1795813901.9374192, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (16777218, 1, 3, 2, 'q2', 'human', '{"type":"human","data":{"content":"And a kingfisher?"}}', 1795813901.7829711, 1, 8, 1, 0);
INSERT INTO public.threadmem_node VALUES (16777219, 1, 4, 3, 'a2', 'ai', '{"type":"ai","data":{"content":"It dives."}}', 1795813901.7829711, 1, 8, 1, 0);
INSERT INTO public.threadmem_node VALUES (67108864, 2, 1, NULL, '2f087172-a416-8677-8616-000000000001', 'ai', '{"type":"ai","data":{"content":"user: How does a heron fish?\nai: It waits.\nuser: What does bread need?\nai: Salt and time.\nuser: And an osprey?","additional_kwargs":{"title":"Heron, fish, waits, bread"}}}', 1795813902.231102, 0, NULL, 0, 1);
INSERT INTO public.threadmem_node VALUES (83886080, 3, 1, NULL, 'h1', 'human', '{"type":"human","data":{"content":"How heavy is a wren?"}}', 1795813902.317214, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (83886081, 3, 2, 1, 'h2', 'ai', '{"type":"ai","data":{"content":"","tool_calls":[{"name":"weigh","args":{"bird":"wren"},"id":"call-1","type":"tool_call"}]}}', 1795813902.317214, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (83886082, 3, 3, 2, 'h3', 'tool', '{"type":"tool","data":{"content":"9 g","tool_call_id":"call-1"}}', 1795813902.317214, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (83886083, 3, 4, 3, 'h4', 'ai', '{"type":"ai","data":{"content":"Nine grams."}}', 1795813902.317214, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (100663296, 4, 1, NULL, '8cf1fe8c-5d45-4a3d-9efb-51ade18d5c71', 'human', '{"type":"human","data":{"content":"a swan"}}', 1795813902.5240543, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (100663297, 4, 2, 1, 'f980d242-f83b-422e-a3c0-fcbe1883bfae', 'ai', '{"type":"ai","data":{"content":"about a swan"}}', 1795813902.5562706, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (100663298, 4, 3, 2, '30e47393-d767-4c67-9a5c-287f6f1e6c78', 'human', '{"type":"human","data":{"content":"a crane"}}', 1795813902.648115, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (100663299, 4, 4, 3, '84e37fdb-909e-4f9e-be8e-aacffbcc3f12', 'ai', '{"type":"ai","data":{"content":"about a crane"}}', 1795813902.6856937, 0, NULL, 1, 0);
INSERT INTO public.threadmem_node VALUES (117440512, 7, 1, NULL, 's1', 'human', '{"sealed":"stream","data":"JBZPV5Dwdf/vlg3Ymo+6HJdSRR0a/lKy50sT3g6XK3xxuE1KELfRBpBAtMi0VHfxC9vCZLztXMRIjzUigtOmddWbaWVRpVG3AdQOoTnqGpMHAKF8gTgQsqy6/YFZR27s7yVOwS/6cilB5RdzjWrRA0WgjlzeBUbn9HBY"}', 1795813903.1299436, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (117440513, 7, 2, 1, 'b721ef8c-c6d1-8906-822f-000000000002', 'ai', '{"sealed":"stream","data":"zUNEQd4tskNNZOqcCOsSt6/gBHYclQbA+qr0FSDQcgw3MJviH6uP6iET7S8nTz1Ex9Bh3xZkuRM5AS6hiTkYznDWBGdWtDd68smBRhhR7WW+eciddTv8L58a/3/oNuYqNeUMhlcaLwsX+4XLl55fnmsP4LAEPOLzlitm6TtLi3z+3SsCLbiJV0bnAyqWjdE="}', 1795813903.1299436, 0, NULL, 0, 0);
INSERT INTO public.threadmem_node VALUES (134217728, 8, 1, NULL, 'c631b987-29da-462d-bd28-3a3311c61db5', 'human', '{"sealed":"stream","data":"5BMoEiPsGk7duruA3usMfxk86iA55+yt+Gc7unN6YC0/XK+8E9OZE/SsyCrR6SO3lDHEHFcrLRR5rcRQlRlXKTbhqEQIxupiwFlxJwgL4ZwMvJ/dsb1OhwQlZD1j5UHz77Or+ywTxP9KD7NrAVjxcUcRLomPzdLiK8NaQE0syRgx5+A+7prlDrK23BkUij/k+N++"}', 1795813903.3344066, 0, NULL, 1, 1);
INSERT INTO public.threadmem_node VALUES (134217729, 8, 2, 1, '9874d5d1-4a4a-4529-a24a-89c2919cd126', 'ai', '{"sealed":"stream","data":"N7VNDE3VOOZLlHilJAAhGGTGNfqtLjQmhJ7wCcZK6OUSbQU24ITn4Q637hf4/U5GVVmouvUJsCF0qAcZDY3AdAawB1XipQOlolsZnUTyy8VB+w7wK7eerDEu6Aa6k+gKovE2MekJP0IOza3eL5VxVdDM7gwCUb/RzMNA5cHmIjAX5/dfid2jy/F3XX3oDFsneUh0TUW9"}', 1795813903.357344, 0, NULL, 1, 0);
INSERT INTO public.threadmem_profile VALUES (1, 'Birds and bread', '{"stars": 3}', NULL);
INSERT INTO public.threadmem_segment VALUES (1, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (2, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (3, 1, 16777217);
INSERT INTO public.threadmem_segment VALUES (4, 2, NULL);
INSERT INTO public.threadmem_segment VALUES (5, 3, NULL);
INSERT INTO public.threadmem_segment VALUES (6, 4, NULL);
INSERT INTO public.threadmem_segment VALUES (7, 7, NULL);
INSERT INTO public.threadmem_segment VALUES (8, 8, NULL);
INSERT INTO public.threadmem_summary VALUES (16777217, 'Waits', 'It waits.');
INSERT INTO public.threadmem_summary VALUES (16777221, 'Salt, time', 'Salt and time.');
INSERT INTO public.threadmem_tree VALUES (2, 'ada', 'birds', 'summaries', NULL, NULL, 1, 0, 1795813902.1638207, false, NULL);
INSERT INTO public.threadmem_tree VALUES (3, 'ada', 'tools', '', NULL, NULL, 0, 0, 1795813902.3173144, false, 1795813902.317214);
INSERT INTO public.threadmem_tree VALUES (4, 'ada', 'graph', '', NULL, NULL, 0, 0, 1795813902.3949165, false, 1795813903);
INSERT INTO public.threadmem_tree VALUES (1, 'ada', 'birds', '', 33554432, NULL, 6, 0, 1795813901.7182374, false, 1795813902);
INSERT INTO public.threadmem_tree VALUES (7, 'eve', 'secret', '', NULL, NULL, 0, 0, 1795813903.1299958, true, 1795813903.1299436);
INSERT INTO public.threadmem_tree VALUES (8, 'eve', 'graph', '', NULL, NULL, 0, 0, 1795813903.2684908, true, 1795813904);
INSERT INTO public.threadmem_unit VALUES (16777217, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (33554432, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777221, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (50331648, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (67108864, NULL, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777216, 67108864, 0, 0, 0, 1795813903.0644162);
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724e416340800032faf2b6bee0', '\xb626a18cc0024337020cd6c4fe92c34d', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724d7b6566bfffac0d63620738', '\x3316c43bd2e2ecb7fb88d3f765391863', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724d7b6566bfffac0d63620738', '\x3316c43bd2e2ecb7fb88d3f765391863', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724d7b6566bfffac0d63620738', '\x3316c43bd2e2ecb7fb88d3f765391863', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724e416340800032faf2b6bee0', '\xb626a18cc0024337020cd6c4fe92c34d', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239372c3130303636333239375d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724fec6a4e80026899f5bc742c', '\xac0b62105e84d935eef642fe7851ea15', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724fec6a4e80026899f5bc742c', '\xac0b62105e84d935eef642fe7851ea15', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa72500a66378003e6fd98ff972e', '\xe60c5e183678f156573c8bfceb98f8a9', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa724fec6a4e80026899f5bc742c', '\xac0b62105e84d935eef642fe7851ea15', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239382c3130303636333239385d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eaa72500a66378003e6fd98ff972e', '\xe60c5e183678f156573c8bfceb98f8a9', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239392c3130303636333239395d5d');
INSERT INTO public.threadmem_write VALUES (8, '', '\x1f1eaa7255fc64b6bfff8e794dee83ce', '\xd4d8949da92112b6c651f4563918cd54', 1, '~__pregel_pull, __start__', 'seen', 'msgpack+stream', '\x0509ea2b4790f43944f9e04c1c9b4d8716549d0a4fe1e625ad6c58ff7a0e32e8e3306f1c139127ed26c7cc6ec626dd390c');
INSERT INTO public.threadmem_write VALUES (8, '', '\x1f1eaa7255fc64b6bfff8e794dee83ce', '\xd4d8949da92112b6c651f4563918cd54', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null+stream', '\xf217811a36deff54e3f69597f05a5dbe333cb69be2f24bc8fc7ed44913fab2b2476164f392da55d4558aa3057a69932b');
INSERT INTO public.threadmem_write VALUES (8, '', '\x1f1eaa7255fc64b6bfff8e794dee83ce', '\xd4d8949da92112b6c651f4563918cd54', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_write VALUES (8, '', '\x1f1eaa72560962ca8000655ddaa8db17', '\xd151c3a1b2cb2887495142bdd953d6ff', 1, '~__pregel_pull, model', 'seen', 'msgpack+stream', '\x67648062236b3d5cf751a33b770a6eeeb694c6c0b6e7e377b5a81a7dc1abb999b9850a74efbb728007539f65bcbb8c9638');
INSERT INTO public.threadmem_write VALUES (8, '', '\x1f1eaa72560962ca8000655ddaa8db17', '\xd151c3a1b2cb2887495142bdd953d6ff', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3133343231373732392c3133343231373732395d5d');
SELECT pg_catalog.setval('public.threadmem_item_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_namespace_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_segment_id_seq', 8, true);
SELECT pg_catalog.setval('public.threadmem_tree_id_seq', 9, true);
ALTER TABLE ONLY public.threadmem_bias
    ADD CONSTRAINT threadmem_bias_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.threadmem_blob
    ADD CONSTRAINT threadmem_blob_pkey PRIMARY KEY (tree, id);
ALTER TABLE ONLY public.threadmem_chat_memory
    ADD CONSTRAINT threadmem_chat_memory_pkey PRIMARY KEY (owner, id);
ALTER TABLE ONLY public.threadmem_checkpoint
    ADD CONSTRAINT threadmem_checkpoint_pkey PRIMARY KEY (tree, ns, id);
ALTER TABLE ONLY public.threadmem_choice
    ADD CONSTRAINT threadmem_choice_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_digest
    ADD CONSTRAINT threadmem_digest_id UNIQUE (tree, id);
ALTER TABLE ONLY public.threadmem_digest
    ADD CONSTRAINT threadmem_digest_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_draft
    ADD CONSTRAINT threadmem_draft_pkey PRIMARY KEY (tree, hash);
ALTER TABLE ONLY public.threadmem_embedding
    ADD CONSTRAINT threadmem_embedding_pkey PRIMARY KEY (key, model);
ALTER TABLE ONLY public.threadmem_gist
    ADD CONSTRAINT threadmem_gist_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_graft
    ADD CONSTRAINT threadmem_graft_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_item
    ADD CONSTRAINT threadmem_item_key UNIQUE (namespace, key);
ALTER TABLE ONLY public.threadmem_item
    ADD CONSTRAINT threadmem_item_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_item_vector
    ADD CONSTRAINT threadmem_item_vector_pkey PRIMARY KEY (item, number);
ALTER TABLE ONLY public.threadmem_key
    ADD CONSTRAINT threadmem_key_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.threadmem_lexicon
    ADD CONSTRAINT threadmem_lexicon_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_lineage
    ADD CONSTRAINT threadmem_lineage_pkey PRIMARY KEY (tree, seq);
ALTER TABLE ONLY public.threadmem_lineage
    ADD CONSTRAINT threadmem_lineage_turn UNIQUE (tree, turn);
ALTER TABLE ONLY public.threadmem_mark
    ADD CONSTRAINT threadmem_mark_pkey PRIMARY KEY (tree, name);
ALTER TABLE ONLY public.threadmem_memory
    ADD CONSTRAINT threadmem_memory_pkey PRIMARY KEY (owner);
ALTER TABLE ONLY public.threadmem_migration
    ADD CONSTRAINT threadmem_migration_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.threadmem_namespace
    ADD CONSTRAINT threadmem_namespace_path UNIQUE (owner, path);
ALTER TABLE ONLY public.threadmem_namespace
    ADD CONSTRAINT threadmem_namespace_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_node
    ADD CONSTRAINT threadmem_node_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_profile
    ADD CONSTRAINT threadmem_profile_pkey PRIMARY KEY (tree);
ALTER TABLE ONLY public.threadmem_segment
    ADD CONSTRAINT threadmem_segment_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_summary
    ADD CONSTRAINT threadmem_summary_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_tree
    ADD CONSTRAINT threadmem_tree_name UNIQUE (owner, conversation, scope);
ALTER TABLE ONLY public.threadmem_tree
    ADD CONSTRAINT threadmem_tree_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.threadmem_unit
    ADD CONSTRAINT threadmem_unit_pkey PRIMARY KEY (key);
ALTER TABLE ONLY public.threadmem_write
    ADD CONSTRAINT threadmem_write_pkey PRIMARY KEY (tree, ns, checkpoint, task, idx);
CREATE INDEX threadmem_checkpoint_run ON public.threadmem_checkpoint USING btree (run) WHERE (run IS NOT NULL);
CREATE INDEX threadmem_graft_parent ON public.threadmem_graft USING btree (tree, parent);
CREATE INDEX threadmem_item_expires ON public.threadmem_item USING btree (expires) WHERE (expires IS NOT NULL);
CREATE INDEX threadmem_item_expiry ON public.threadmem_item USING btree (namespace, expires) WHERE (expires IS NOT NULL);
CREATE INDEX threadmem_lexicon_words ON public.threadmem_lexicon USING gin (words);
CREATE UNIQUE INDEX threadmem_node_live ON public.threadmem_node USING btree (tree, message) WHERE ((named = 1) AND (state = 0));
CREATE INDEX threadmem_node_past ON public.threadmem_node USING btree (tree, message) WHERE ((named = 1) AND (state > 0));
CREATE UNIQUE INDEX threadmem_node_seq ON public.threadmem_node USING btree (tree, seq) WHERE (opens = 1);
CREATE INDEX threadmem_node_unsaid ON public.threadmem_node USING btree (tree) WHERE ((state > 0) OR (role <> ALL (ARRAY['human'::text, 'ai'::text, 'chat'::text])));
CREATE INDEX threadmem_segment_parent ON public.threadmem_segment USING btree (tree, parent);
CREATE INDEX threadmem_tree_used ON public.threadmem_tree USING btree (owner, used, id) WHERE (used IS NOT NULL);
CREATE INDEX threadmem_unit_parent ON public.threadmem_unit USING btree (parent) WHERE (parent IS NOT NULL);
ALTER TABLE ONLY public.threadmem_blob
    ADD CONSTRAINT threadmem_blob_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_checkpoint
    ADD CONSTRAINT threadmem_checkpoint_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_digest
    ADD CONSTRAINT threadmem_digest_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
ALTER TABLE ONLY public.threadmem_draft
    ADD CONSTRAINT threadmem_draft_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
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
ALTER TABLE ONLY public.threadmem_write
    ADD CONSTRAINT threadmem_write_tree_fkey FOREIGN KEY (tree) REFERENCES public.threadmem_tree(id);
