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
    superseded_by bigint
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
INSERT INTO public.threadmem_blob VALUES (6, 2, '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_blob VALUES (6, 3, 'msgpack+stream', '\x21d68b0d63ce2056b336f812587ab62d804740353a3d748fbc457575524d3a1233e7b22178193ca1a257b6f2326cc0c463');
INSERT INTO public.threadmem_blob VALUES (6, 4, 'null+stream', '\xa85b1213923ffabf3d639d6cab5f63f4b7d6b7ba13048499a78040152101748387bc36d89c2bb4baf6fa9d002588af89');
INSERT INTO public.threadmem_blob VALUES (6, 1, '#', '\x7b226d65737361676573223a5b5b3133343231373732382c3133343231373732385d5d7d0a6d73677061636b2b73747265616d0ad6130a5807916d436453cfccc2c4076dfe7c7673376d02920b499da2e574b47a5c92960436cb353011f7fe92615a0bfad734947a93ec11fc6c52f9c33f0b83e1b586ff');
INSERT INTO public.threadmem_blob VALUES (6, 5, '#', '\x5b5b3133343231373732382c3133343231373732395d5d');
INSERT INTO public.threadmem_blob VALUES (6, 6, 'msgpack+stream', '\x10526ae3267d874dcdc8b3b6b6c6772e4a3f21d52812dab5383122dfe6c26daeec50703ec0ac04955d54bfeaf88bfca88e');
INSERT INTO public.threadmem_chat_memory VALUES ('ada', 'window', '[[null, "{\"type\":\"system\",\"data\":{\"content\":\"Be kind.\"}}"], [null, "{\"type\":\"human\",\"data\":{\"content\":\"Hello\"}}"]]', 1795823213.0204651);
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eabcd252e6491bfff4e220168cc86', NULL, NULL, '[1]', 'msgpack', '\x939504d920323032362d31312d32375432333a34363a35322e3835393438382b30303a303081a95f5f73746172745f5f0181a95f5f696e7075745f5f8091a95f5f73746172745f5f8083a6736f75726365a5696e707574a473746570ffa7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eabcd254c696780005598a1c48652', '\x1f1eabcd252e6491bfff4e220168cc86', NULL, '[0,2,3,4]', 'msgpack', '\x939504d920323032362d31312d32375432333a34363a35322e3837313839332b30303a303084a95f5f73746172745f5f02a86d6573736167657302a47365656e02af6272616e63683a746f3a6d6f64656c0282a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f0193af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657000a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eabcd256c6aa1800113b00f303d77', '\x1f1eabcd254c696780005598a1c48652', NULL, '[0,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32375432333a34363a35322e3838353033322b30303a303084a95f5f73746172745f5f02a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0292a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657001a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eabcd260960578002893d2924fa0b', '\x1f1eabcd256c6aa1800113b00f303d77', NULL, '[7,5,6,0]', 'msgpack', '\x939504d920323032362d31312d32375432333a34363a35322e3934393037382b30303a303084a95f5f73746172745f5f04a86d6573736167657303a47365656e03af6272616e63683a746f3a6d6f64656c0383a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f01a56d6f64656c81af6272616e63683a746f3a6d6f64656c0291a95f5f73746172745f5f8083a6736f75726365a5696e707574a47374657002a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eabcd26136e2b800301ceb12919d8', '\x1f1eabcd260960578002893d2924fa0b', NULL, '[0,8,9,10]', 'msgpack', '\x939504d920323032362d31312d32375432333a34363a35322e3935333533342b30303a303084a95f5f73746172745f5f05a86d6573736167657305a47365656e05af6272616e63683a746f3a6d6f64656c0583a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0293af6272616e63683a746f3a6d6f64656ca86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657003a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (4, '', '\x1f1eabcd262760078004004de61f044a', '\x1f1eabcd26136e2b800301ceb12919d8', NULL, '[0,11,12,0]', 'msgpack', '\x939504d920323032362d31312d32375432333a34363a35322e3936313335382b30303a303084a95f5f73746172745f5f05a86d6573736167657306a47365656e06af6272616e63683a746f3a6d6f64656c0683a95f5f696e7075745f5f80a95f5f73746172745f5f81a95f5f73746172745f5f04a56d6f64656c81af6272616e63683a746f3a6d6f64656c0592a86d65737361676573a47365656e8083a6736f75726365a46c6f6f70a47374657004a7706172656e747380');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eabcd2e5d6aefbfffa83e2b27496e', NULL, NULL, '[1]', 'msgpack+stream', '\x45cd7210b086845c345ed74a725b4a70a0cc7dbc273ef85bce6bbbb800745023d9c703437d07391576ec705f77e8b9c29e66f7e61bbca4b67ebdb91a48f04c7bafcf16c96015e11398470cc16c946d33427aabc065559ae7acfb918b7d0a912f6dfb1c580ab701a82356b550e9863d9b108d71e03fe74e6ac28f8e55173b4dc729f67eab67a8edb738aa32c8522b4aca158f020c279b');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eabcd2e64641480007e19d8373808', '\x1f1eabcd2e5d6aefbfffa83e2b27496e', NULL, '[0,2,3,4]', 'msgpack+stream', '\x6dd6ce9dc0b2dc30afdc27c8ebd28be13c24d0ae00e54d80b22b355a6e6407ee2e15d293c86df0660e32fea6befbc68599180aed0358979d6afcd2ba77a3670aa82b03cd9cd428070e70ed80db2d37fb92f8bda215b9008834bdbbe43201519858535f0d7a0771160dd670776e353d4645a23df3f2a09d2cc422052520bedf5ff203df8bde2a7afd62cfa9ba2ce87e6a790b06217307d65c2ecfb698b5a81a35a7a040294df42ab006826f6d899e100e884f2e320e8b82fd0cdb940f8295ada7e9f834806aef1ae9b42f1d25a46ab321efabfba07676d1b2d6b870dfbc728729');
INSERT INTO public.threadmem_checkpoint VALUES (6, '', '\x1f1eabcd2ea664d880017ee03d0e64ed', '\x1f1eabcd2e64641480007e19d8373808', NULL, '[0,5,6,0]', 'msgpack+stream', '\x94f73d3e65b11c898803029cb0a5ce04154380c960ca7978e61791ab94b20969621907c31e23108ae1f3564652ed59869677b843c073cbd7783536d0572bb72e62137e636c9fcd22e3278881ff671fdd48141994f4d23abced42105bf41d377a29cd82fea3b242c10caac5fab7309c6856733aeb38cb51456b1388ebcd6f9e9ab7c53f64338c82446f0d619acb6e16ffd5a2984bba9f1b7af0e0976f71d1a29cb3939e6a5bfa1259a526cc93a23aab986688c2773ff902870fd7a7c77e8a0db49a49fd31801e959c2d1886f09edac25cdb68ee08d77347df918b8cdb10fc8595fb7eced4b6e3a2c2');
INSERT INTO public.threadmem_choice VALUES (33554432, 'moved by hand', '[]', NULL);
INSERT INTO public.threadmem_digest VALUES (67108864, 2, 'birds', 1, 1, 0, 1, 5, 1795823212.720701, 1795823212.7758665, 0);
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
INSERT INTO public.threadmem_embedding VALUES (117440512, 'words', '\x73747265616d0a3c01c704c6f59e50f22d03e16244603c2502218787db0b064e87743e0d7a16b4669f22b5c8a1bb7451ef1cd9c1e39733af7a7e0da07f161ac9cc14fc4b5d709854ed64cbf4fdae9c38f7b98e505414f30fa364d8f7b757f47ecd7ba8a13691fbf1946eba09da63739dc6d62c4be661fc61f2dff1d699b44d815f66b3896e54ac9aa4a8ea91ab35f61aabdbef53a5356ed7a19b304a1fbe60d1bb39d18b0746f57191c775789eb36f513a1fa6d6305877');
INSERT INTO public.threadmem_embedding VALUES (117440513, 'words', '\x73747265616d0acf99ae4cbdd9dd7f32f95f2a9709fed448b6ae38a82038cd2ec4278d72c1863dc35720237e3b3924d1429a5a3fd93ad2b3f0527630fad4ffa9180721e8285d36c7f31bc6420a6620203a7fdfa465c2db6d22593cf4ecace872117b35a0fe6df3a2c6e921c0ec36561b8c02241e47c6fe7d3486429967170ee0fbee35888b2361181a61a7ca5bef7b482465c03d48847f981bffb236075886727137010a42c4bc35bcedf14105cd6bba6fd6c481e689d3');
INSERT INTO public.threadmem_gist VALUES (16777217, 'it wait', 66048, '', 1795823212.720701);
INSERT INTO public.threadmem_gist VALUES (16777218, 'and a kingfish', 66049, '', 1795823212.744082);
INSERT INTO public.threadmem_gist VALUES (16777219, 'it dive', 66048, '', 1795823212.744082);
INSERT INTO public.threadmem_gist VALUES (16777220, 'what doe bread need', 66049, '', 1795823212.7479415);
INSERT INTO public.threadmem_gist VALUES (16777221, 'salt and time', 132096, '', 1795823212.7479415);
INSERT INTO public.threadmem_gist VALUES (33554432, 'what doe bread need', 66049, '', 1795823212.7479415);
INSERT INTO public.threadmem_gist VALUES (50331648, 'and an osprey', 66049, '', 1795823212.7758665);
INSERT INTO public.threadmem_gist VALUES (67108864, 'user how doe a heron fish ai it wait user what doe bread need ai salt and time user and an osprey', 792577, '', 1795823212.8130746);
INSERT INTO public.threadmem_gist VALUES (83886080, 'how heavi is a wren', 132097, '', 1795823212.8416967);
INSERT INTO public.threadmem_gist VALUES (83886081, '', 0, '', 1795823212.8416967);
INSERT INTO public.threadmem_gist VALUES (83886082, '', 0, '', 1795823212.8416967);
INSERT INTO public.threadmem_gist VALUES (83886083, 'nine gram', 132104, '', 1795823212.8416967);
INSERT INTO public.threadmem_gist VALUES (100663296, 'a swan', 66048, '', 1795823212.8898456);
INSERT INTO public.threadmem_gist VALUES (100663297, 'about a swan', 66048, '', 1795823212.9200926);
INSERT INTO public.threadmem_gist VALUES (100663298, 'a crane', 66048, '', 1795823212.9644222);
INSERT INTO public.threadmem_gist VALUES (100663299, 'about a crane', 66048, '', 1795823212.9724941);
INSERT INTO public.threadmem_graft VALUES (16777221, 1, 33554432);
INSERT INTO public.threadmem_item VALUES (1, 1, '\x6865726f6e', 1795823212.9869323, 1795823212.9869323, NULL, NULL, 1, '{"legs":2,"text":"grey heron"}');
INSERT INTO public.threadmem_item VALUES (2, 2, '\x7377696674', 1795823213.0046635, 1795823213.0046635, NULL, NULL, 1, '{"legs":2,"text":"black swift"}');
INSERT INTO public.threadmem_item_vector VALUES (1, 0, 'words', '\xb4b09b2eb8aac42f9c2497325a33b52c87af5bb4353297b15e2b0db4c4ad63aa24b0153003ac48a64caebaad21a9b2aedf281c2f77262b3257ac8221c6346b32c8b1832809a8ab298e2b50b0bf2d27b150302332ada3e330a72e44a6442c4c2fa127aaafd52ea232cc310117189d832c9830bf1f321cc6a4a9206b31c529e9aa');
INSERT INTO public.threadmem_item_vector VALUES (2, 0, 'words', '\x4db196143b1e2c2766a8122dbe308b2ebeb55ca88323cdb2ebb0cface02f5baaa7ae5931d4b0c1aedcb323adb6a01eb0efa039b044af6b3152a0e2286334322b2db2062ac02c0fb102270825422db52530346f300c30ef2f9baf5720f830112793aecbae352e5b30de315d2b11a83e33bf9c4ea70f312faa0e1b2b29d52d4c28');
INSERT INTO public.threadmem_key VALUES ('eve', '{"sealed":"stream","data":"L+TuCpZsljF2Z+IydMCpEvmz8JaNfI3xuV578Xmt/FkqEl0u9MMACH5LJyJ9K93qUDPxD8HT86etyFmuHlU5xptlz9I="}');
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
INSERT INTO public.threadmem_mark VALUES (5, 'vectors:words', 2, 2, 0);
INSERT INTO public.threadmem_migration VALUES (6, 'the first schema that is migrated', 1795823212.608032);
INSERT INTO public.threadmem_migration VALUES (7, 'the expired items of a namespace are found by an index', 1795823212.608032);
INSERT INTO public.threadmem_migration VALUES (8, 'the messages of a conversation are counted by an index', 1795823212.608032);
INSERT INTO public.threadmem_migration VALUES (9, 'nodes are found by plain indexes', 1795823212.608032);
INSERT INTO public.threadmem_namespace VALUES (1, 'ada', '\x626972647300776174657200');
INSERT INTO public.threadmem_namespace VALUES (2, 'ada', '\x62697264730061697200');
INSERT INTO public.threadmem_node VALUES (16777216, 1, 1, NULL, 'q1', 'human', '{"type":"human","data":{"content":"How does a heron fish?"}}', 1795823212.720701, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777217, 1, 2, 1, 'a1', 'ai', '{"type":"ai","data":{"content":"It waits."}}', 1795823212.720701, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777220, 1, 5, 4, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795823212.7479415, 1, 7);
INSERT INTO public.threadmem_node VALUES (33554432, 1, 7, NULL, 'q3', 'human', '{"type":"human","data":{"content":"What does bread need?"}}', 1795823212.7479415, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777221, 1, 6, 7, 'a3', 'ai', '{"type":"ai","data":{"content":"Salt and time."}}', 1795823212.7479415, 0, NULL);
INSERT INTO public.threadmem_node VALUES (50331648, 1, 8, 2, 'q4', 'human', '{"type":"human","data":{"content":"And an osprey?"}}', 1795823212.7758665, 0, NULL);
INSERT INTO public.threadmem_node VALUES (16777218, 1, 3, 2, 'q2', 'human', '{"type":"human","data":{"content":"And a kingfisher?"}}', 1795823212.744082, 1, 8);
INSERT INTO public.threadmem_node VALUES (16777219, 1, 4, 3, 'a2', 'ai', '{"type":"ai","data":{"content":"It dives."}}', 1795823212.744082, 1, 8);
INSERT INTO public.threadmem_node VALUES (67108864, 2, 1, NULL, '01a21f67-990d-7271-944c-849b04ba29f4', 'ai', '{"type":"ai","data":{"content":"user: How does a heron fish?\nai: It waits.\nuser: What does bread need?\nai: Salt and time.\nuser: And an osprey?","additional_kwargs":{"title":"Heron, fish, waits, bread"}}}', 1795823212.8130746, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886080, 3, 1, NULL, 'h1', 'human', '{"type":"human","data":{"content":"How heavy is a wren?"}}', 1795823212.8416967, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886081, 3, 2, 1, 'h2', 'ai', '{"type":"ai","data":{"content":"","tool_calls":[{"name":"weigh","args":{"bird":"wren"},"id":"call-1","type":"tool_call"}]}}', 1795823212.8416967, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886082, 3, 3, 2, 'h3', 'tool', '{"type":"tool","data":{"content":"9 g","tool_call_id":"call-1"}}', 1795823212.8416967, 0, NULL);
INSERT INTO public.threadmem_node VALUES (83886083, 3, 4, 3, 'h4', 'ai', '{"type":"ai","data":{"content":"Nine grams."}}', 1795823212.8416967, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663296, 4, 1, NULL, '600e4439-2b76-4a69-9e77-1edfbb1d688d', 'human', '{"type":"human","data":{"content":"a swan"}}', 1795823212.8898456, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663297, 4, 2, 1, '219e8f29-4dc5-4b1c-bb05-65585743486b', 'ai', '{"type":"ai","data":{"content":"about a swan"}}', 1795823212.9200926, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663298, 4, 3, 2, 'f41298c4-7db2-467e-941e-7bfeb1cbe297', 'human', '{"type":"human","data":{"content":"a crane"}}', 1795823212.9644222, 0, NULL);
INSERT INTO public.threadmem_node VALUES (100663299, 4, 4, 3, 'd6f3565c-a2f1-48fa-959c-69d15bddc09e', 'ai', '{"type":"ai","data":{"content":"about a crane"}}', 1795823212.9724941, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440512, 5, 1, NULL, 's1', 'human', '{"sealed":"stream","data":"zIvOJODpDv4tFZ0luWRjtN/gFyyRlUGI6psS7W3M4a9QSwCSMg+zRFbvcsp/hToxV+rW50pDl92bm1g83RKOTuXc9hd+st+m7guYSPAlskLqmJcbbK9LdhCY3N4tTnuCaxucmGGIenNzeHXWw895iLY2+sKZukKvg5qX"}', 1795823213.744425, 0, NULL);
INSERT INTO public.threadmem_node VALUES (117440513, 5, 2, 1, '01a21f67-9cb0-75e1-b0df-1b7967419057', 'ai', '{"sealed":"stream","data":"mCSLEW5tfnOJwfgyVJWrhpQSWpdSy0XCKLrhV10TDux7maC6Pn4VMc/TNCUwTY2ZnEVj/fsW5ArKvswM6+1XkRFssvmcm5ROvkoYfiaWh+pjfTmRjGuouuCNss46z86sAxXwWHmXhHpeeMTDxKc4q4HRtXxNpN0FfLiL5xgj3UWZ8Lt8R6ZOV0FS0BXwTSs="}', 1795823213.744425, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217728, 6, 1, NULL, 'ac73aa3e-6ab3-402a-8f46-9a7c207b7897', 'human', '{"sealed":"stream","data":"15cj3Ci/sUPf7gu6lkstQlC7lQ9xaXfgUKDHql/JB7ifP84kWAWiZ+QYuZCDmVmkGYaWDL6idPv0dbzq97+VhXNMxi/mpS2d1VsFEsgCO8Ia8vuaJwntC3HPp7uCQN87pg5xDS9HaPov/iBFxeZA3cu19LUWQBeQo4Uxs/O+bp6al9Gw+VCGLYXZNq7WSA9jfxnx"}', 1795823213.841497, 0, NULL);
INSERT INTO public.threadmem_node VALUES (134217729, 6, 2, 1, '5632c65e-0a93-441b-9a94-a42c7be872e3', 'ai', '{"sealed":"stream","data":"VHLudmdkMMOwmc3chAy0t8+35uMvL7/pmRkN4n57c+NwMgLczQ8P+P1FydB87u/IAL0r8/fwT+2s2InSDRkLSnUM3J62lBpn503BJGkXZ20cZjlSlLIH2Rio88MsZP+FfcnPvgNZmAN4GwBuw8K65L7ubo56KSp8nCsgWhAARxaguCOvgxneNsypH+NPlidpCTw/yHq2"}', 1795823213.8724344, 0, NULL);
INSERT INTO public.threadmem_profile VALUES (1, 'Birds and bread', '{"stars": 3}', NULL);
INSERT INTO public.threadmem_segment VALUES (1, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (2, 1, NULL);
INSERT INTO public.threadmem_segment VALUES (3, 1, 16777217);
INSERT INTO public.threadmem_segment VALUES (4, 2, NULL);
INSERT INTO public.threadmem_segment VALUES (5, 3, NULL);
INSERT INTO public.threadmem_segment VALUES (6, 4, NULL);
INSERT INTO public.threadmem_segment VALUES (7, 5, NULL);
INSERT INTO public.threadmem_segment VALUES (8, 6, NULL);
INSERT INTO public.threadmem_summary VALUES (16777217, 'Waits', 'It waits.');
INSERT INTO public.threadmem_summary VALUES (16777221, 'Salt, time', 'Salt and time.');
INSERT INTO public.threadmem_tree VALUES (2, 'ada', 'birds', 'summaries', NULL, NULL, 1, 0, 1795823212.7959607, false, NULL);
INSERT INTO public.threadmem_tree VALUES (3, 'ada', 'tools', '', NULL, NULL, 0, 0, 1795823212.8417785, false, 1795823212.8416967);
INSERT INTO public.threadmem_tree VALUES (4, 'ada', 'graph', '', NULL, NULL, 0, 0, 1795823212.8611176, false, 1795823213);
INSERT INTO public.threadmem_tree VALUES (1, 'ada', 'birds', '', 33554432, NULL, 6, 0, 1795823212.7207854, false, 1795823213);
INSERT INTO public.threadmem_tree VALUES (5, 'eve', 'secret', '', NULL, NULL, 0, 0, 1795823213.7444928, true, 1795823213.744425);
INSERT INTO public.threadmem_tree VALUES (6, 'eve', 'graph', '', NULL, NULL, 0, 0, 1795823213.8235126, true, 1795823214);
INSERT INTO public.threadmem_unit VALUES (16777217, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (33554432, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777221, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (50331648, 67108864, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (67108864, NULL, 0, 0, 0, NULL);
INSERT INTO public.threadmem_unit VALUES (16777216, 67108864, 0, 0, 0, 1795823213.7105608);
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd252e6491bfff4e220168cc86', '\xbfd18b684f1b0eb27a7f0ec2238fafc5', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd252e6491bfff4e220168cc86', '\xbfd18b684f1b0eb27a7f0ec2238fafc5', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd252e6491bfff4e220168cc86', '\xbfd18b684f1b0eb27a7f0ec2238fafc5', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239362c3130303636333239365d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd254c696780005598a1c48652', '\x142fd2356a79b763c122778aec457b82', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd254c696780005598a1c48652', '\x142fd2356a79b763c122778aec457b82', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239372c3130303636333239375d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd260960578002893d2924fa0b', '\xa8cfed7422d8dc5b22a1c69e996d88c3', 1, '~__pregel_pull, __start__', 'seen', 'msgpack', '\x01');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd260960578002893d2924fa0b', '\xa8cfed7422d8dc5b22a1c69e996d88c3', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null', '\x');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd26136e2b800301ceb12919d8', '\x2508c7fd66854e2af0ef2082bca74777', 1, '~__pregel_pull, model', 'seen', 'msgpack', '\x02');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd260960578002893d2924fa0b', '\xa8cfed7422d8dc5b22a1c69e996d88c3', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3130303636333239382c3130303636333239385d5d');
INSERT INTO public.threadmem_write VALUES (4, '', '\x1f1eabcd26136e2b800301ceb12919d8', '\x2508c7fd66854e2af0ef2082bca74777', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3130303636333239392c3130303636333239395d5d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eabcd2e5d6aefbfffa83e2b27496e', '\x697a5e2be1c2e8901d95dd93cd26af72', 1, '~__pregel_pull, __start__', 'seen', 'msgpack+stream', '\x825e5769ec09ffac44414f958804195f40d51d3ae0f5b04729a2aae97c301fe9e8d953eb764e5b51f38503784bcb483220');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eabcd2e5d6aefbfffa83e2b27496e', '\x697a5e2be1c2e8901d95dd93cd26af72', 2, '~__pregel_pull, __start__', 'branch:to:model', 'null+stream', '\x1983ca3e81bcf09408d2fe172d4cbc3488f594c902b32dff53e863d9eac4c43fb987c08d677f573d947e68a70805e977');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eabcd2e64641480007e19d8373808', '\xb0b328dcb60e01ccdd2f09f8945bb796', 1, '~__pregel_pull, model', 'seen', 'msgpack+stream', '\x08e7faa03a22f891ee6738848d0c1e7ae7c6890077be381541d3456e3bb6e3446024e9621c8dabea3aed0d19b38f153054');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eabcd2e5d6aefbfffa83e2b27496e', '\x697a5e2be1c2e8901d95dd93cd26af72', 0, '~__pregel_pull, __start__', 'messages', '#', '\x5b5b3133343231373732382c3133343231373732385d5d');
INSERT INTO public.threadmem_write VALUES (6, '', '\x1f1eabcd2e64641480007e19d8373808', '\xb0b328dcb60e01ccdd2f09f8945bb796', 0, '~__pregel_pull, model', 'messages', '#', '\x5b5b3133343231373732392c3133343231373732395d5d');
SELECT pg_catalog.setval('public.threadmem_item_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_namespace_id_seq', 2, true);
SELECT pg_catalog.setval('public.threadmem_segment_id_seq', 8, true);
SELECT pg_catalog.setval('public.threadmem_tree_id_seq', 7, true);
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
