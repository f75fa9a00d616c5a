PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE claims ( /* Sentences about performance, never edited: one that changes is superseded by another */
	seq INTEGER NOT NULL /* Number in the order in which claims were added */, 
	id VARCHAR NOT NULL /* Name of the claim, given by its author */, 
	kind VARCHAR NOT NULL /* speedup, equivalence, ceiling, mfu, memory, does-not-fit, arithmetic */, 
	body VARCHAR NOT NULL /* The claim as JSON (schema/claims-1.schema.json) */, 
	origin VARCHAR NOT NULL /* File that it was added from */, 
	at DATETIME NOT NULL /* When it was added */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT claims_pkey PRIMARY KEY (seq), 
	CONSTRAINT claims_id_key UNIQUE (id)
);
CREATE TABLE claim_supersessions ( /* Claims that no longer stand */
	seq INTEGER NOT NULL /* Number in the order in which they were said */, 
	claim VARCHAR NOT NULL /* Id of the claim that no longer stands */, 
	successor VARCHAR /* Id of the claim that replaces it; null where it was withdrawn */, 
	reason VARCHAR NOT NULL /* Why */, 
	at DATETIME NOT NULL /* When it was said */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT claim_supersessions_pkey PRIMARY KEY (seq)
);
CREATE TABLE claim_verdicts ( /* What was said of claims, and under which rule set; the last one of a claim counts */
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT /* Number in the order in which verdicts were given */, 
	claim VARCHAR NOT NULL /* Id of the claim */, 
	status VARCHAR NOT NULL /* supported, refuted, unproven, stale */, 
	rules VARCHAR NOT NULL /* Digest of the rule set */, 
	judge VARCHAR NOT NULL /* Version of the judge */, 
	at DATETIME NOT NULL /* When it was judged */, 
	codec VARCHAR NOT NULL /* How body is packed: zlib */, 
	body BLOB NOT NULL /* The verdict as JSON, packed */
);
CREATE TABLE decisions ( /* What was decided on a receipt, shown wherever it is quoted */
	seq INTEGER NOT NULL /* Number in the order in which they were made; the last one of a receipt counts */, 
	receipt VARCHAR NOT NULL /* Id of the receipt */, 
	decision VARCHAR NOT NULL /* ship, hold, drop */, 
	reason VARCHAR NOT NULL /* Why */, 
	at DATETIME NOT NULL /* When it was made */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT decisions_pkey PRIMARY KEY (seq)
);
INSERT INTO decisions VALUES(1,'90b3f1a059150d214d2b5cf73bc575e911c350ce446533f1ec6953e2344e50f1','ship','faster on one host','2026-11-29 11:33:18.842582','user:root');
CREATE TABLE quotes ( /* Reports and other documents that quote receipts */
	seq INTEGER NOT NULL /* Number in the order in which they were found */, 
	document VARCHAR NOT NULL /* Path or URL of the document that quotes it */, 
	receipt VARCHAR /* Id of the receipt; null where the document was read and quotes none */, 
	says VARCHAR /* What the document says of it */, 
	at DATETIME NOT NULL /* When the document was read; its last reading counts */, 
	CONSTRAINT quotes_pkey PRIMARY KEY (seq)
);
CREATE TABLE incidents ( /* What watch opened and what closed, never edited: one incident a change point, however many runs see it */
	seq INTEGER NOT NULL /* Number in the order in which events were recorded; the last one of an incident counts */, 
	incident VARCHAR NOT NULL /* Id of the incident: 12 hex digits over line, kind, metric and first launch */, 
	event VARCHAR NOT NULL /* opened, closed */, 
	line BIGINT NOT NULL /* Digest of the line: the configuration without code, wheels, image and driver */, 
	kind VARCHAR NOT NULL /* run.kind of the line's launches */, 
	metric VARCHAR NOT NULL /* The metric that stepped */, 
	body VARCHAR NOT NULL /* The change as JSON: size, interval, axes that moved, launches on both sides */, 
	owner VARCHAR /* Who looks after it; null where nobody was named */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	reason VARCHAR NOT NULL /* Why it was opened or closed */, 
	at DATETIME NOT NULL /* When it was recorded */, 
	CONSTRAINT incidents_pkey PRIMARY KEY (seq)
);
CREATE TABLE seals ( /* Merkle roots: a row that was changed or taken away since is found */
	seq INTEGER NOT NULL /* Number in the order in which seals were written */, 
	store VARCHAR NOT NULL /* Id of this store, which the seal binds */, 
	what VARCHAR NOT NULL /* Table of the rows: receipts, verdicts, supersessions, … */, 
	first BIGINT NOT NULL /* Number of the first row */, 
	last BIGINT NOT NULL /* Number of the last row */, 
	held INTEGER NOT NULL /* How many rows it holds */, 
	root VARCHAR NOT NULL /* Merkle root over the rows' digests, SHA-256 in hex */, 
	at DATETIME NOT NULL /* When it was sealed */, 
	CONSTRAINT seals_pkey PRIMARY KEY (seq), 
	CONSTRAINT seals_store_what_first_root_key UNIQUE (store, what, first, root)
);
INSERT INTO seals VALUES(1,'f4b96518-f985-44cc-8994-7cd0e3b22d96','receipts',1,4,4,'39ec2ce31dd394e5584be427d1aaa64cd7c4d1c4d5ae4c2a1f8fcf63cca7278e','2026-11-29 11:33:11.207551');
INSERT INTO seals VALUES(2,'f4b96518-f985-44cc-8994-7cd0e3b22d96','columns',1,4,4,'a432ab106f69afb151031c27662bc706149c72647bc092e5fe6469cb6ea4d820','2026-11-29 11:33:11.207551');
INSERT INTO seals VALUES(3,'f4b96518-f985-44cc-8994-7cd0e3b22d96','verdicts',1,4,4,'eb6a7b15ddf68f80306efb02c9808db3610ee71dde01ed173e000819d6bd68bb','2026-11-29 11:33:11.207551');
INSERT INTO seals VALUES(4,'f4b96518-f985-44cc-8994-7cd0e3b22d96','seals',1,3,3,'2381629189c0c9060c263ad61f8c7b63478aeab01297ed6ba9f2a58704854fd7','2026-11-29 11:33:11.207551');
CREATE TABLE erased ( /* What a purge erased: the digest of a sealed row stays, so that the seal still holds */
	seq INTEGER NOT NULL /* Number in the order in which rows were erased */, 
	what VARCHAR NOT NULL /* Table of the row: receipts, verdicts, supersessions, … */, 
	number BIGINT NOT NULL /* Its number */, 
	receipt VARCHAR NOT NULL /* Id of the receipt with whose tombstone it went */, 
	leaf VARCHAR NOT NULL /* Digest of the row as the seal holds it, SHA-256 in hex; empty if none did */, 
	seal VARCHAR NOT NULL /* Root of the seal that holds it; empty if none did */, 
	CONSTRAINT erased_pkey PRIMARY KEY (seq)
);
INSERT INTO erased VALUES(1,'receipts',3,'30319f79597adad9eed43d204ce27faf3726883cfa28a43fdbd9b5d2577c8496','3df250d375c30d525bb95dd405e8452b9903bc2e36dfb7cccd746c6a0f19f982','39ec2ce31dd394e5584be427d1aaa64cd7c4d1c4d5ae4c2a1f8fcf63cca7278e');
INSERT INTO erased VALUES(2,'verdicts',3,'30319f79597adad9eed43d204ce27faf3726883cfa28a43fdbd9b5d2577c8496','456ae0645630484d19d55b11fdf502b806349073cfa0131dc8ccd24508ca42a3','eb6a7b15ddf68f80306efb02c9808db3610ee71dde01ed173e000819d6bd68bb');
INSERT INTO erased VALUES(3,'columns',3,'30319f79597adad9eed43d204ce27faf3726883cfa28a43fdbd9b5d2577c8496','7574001e2d013aced75869c2fd01d56a677d16b8f88343bf75f6b382713fa39b','a432ab106f69afb151031c27662bc706149c72647bc092e5fe6469cb6ea4d820');
CREATE TABLE trusted_keys ( /* Public keys whose signatures count */
	seq INTEGER NOT NULL /* Number in the order in which keys were trusted or revoked; the last row of a key counts */, 
	name VARCHAR NOT NULL /* Who holds the key */, 
	fingerprint VARCHAR NOT NULL /* SHA-256 of the key as OpenSSH prints it */, 
	"key" VARCHAR NOT NULL /* The public Ed25519 key in OpenSSH's form */, 
	lanes VARCHAR NOT NULL /* Lanes whose receipts it may sign, by blanks; empty for all */, 
	ends DATETIME /* When it ends; null for never */, 
	revoked VARCHAR /* Why the row revokes the key; null where it trusts it */, 
	at DATETIME NOT NULL /* When it was trusted or revoked */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT trusted_keys_pkey PRIMARY KEY (seq)
);
CREATE TABLE envelopes ( /* Signatures on receipts: with a receipt's bytes each is a DSSE envelope */
	seq INTEGER NOT NULL /* Number in the order in which envelopes came */, 
	receipt VARCHAR NOT NULL /* Id of the receipt that is signed: its bytes are the payload */, 
	fingerprint VARCHAR NOT NULL /* The key that it says it is signed by */, 
	signature VARCHAR NOT NULL /* Ed25519 signature over DSSE's encoding of the receipt, in base64 */, 
	at DATETIME NOT NULL /* When it came */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT envelopes_pkey PRIMARY KEY (seq)
);
CREATE TABLE tokens ( /* Tokens for the server, by the digest of each */
	seq INTEGER NOT NULL /* Number in the order in which they were given; the last row of a name counts */, 
	name VARCHAR NOT NULL /* Who holds it: the actor of every row that it causes */, 
	prefix VARCHAR NOT NULL /* The visible beginning of the token */, 
	digest VARCHAR /* SHA-256 of the token in hex; null in the row that revokes it */, 
	scopes VARCHAR NOT NULL /* What it may do, by blanks: submit, submit:LANE, read, decide, admin */, 
	expires DATETIME /* When it ends; null for never */, 
	at DATETIME NOT NULL /* When it was given or revoked */, 
	CONSTRAINT tokens_pkey PRIMARY KEY (seq)
);
CREATE TABLE axis_values ( /* Every value that an axis was seen to have, once */
	seq INTEGER NOT NULL /* Number of the value, by which configurations name it */, 
	axis VARCHAR NOT NULL /* Name of the axis, as `receipts axes` prints it */, 
	digest BLOB NOT NULL /* SHA-256 of the value */, 
	value VARCHAR NOT NULL /* The axis' effective leaves as JSON */, 
	CONSTRAINT axis_values_pkey PRIMARY KEY (seq), 
	CONSTRAINT axis_values_axis_digest_key UNIQUE (axis, digest)
);
INSERT INTO axis_values VALUES(1,'adapters',X'6a5a869878d81038761553e60e5fa852a789f2e3675b1bdca3694b2701adb38e','{"numerics.adapters.gradient_sync":"off","numerics.adapters.injected":"off","numerics.adapters.kind":"off","numerics.adapters.rank":"off"}');
INSERT INTO axis_values VALUES(2,'batch.global_batch',X'9ada87d1955b300abe8b21ad15a7493306c363681a700f4813b455a4b366e319','{"batch.global_batch":2}');
INSERT INTO axis_values VALUES(3,'batch.global_batch',X'd513196d1430390b8f12c788a2c8dd17e8166718348afb51292123648b22e497','{"batch.global_batch":512}');
INSERT INTO axis_values VALUES(4,'batch.micro_batch',X'82fc36daa24f3c99bce4d62a305d00cd22909de33ed63446a9f82377b9923ada','{"batch.micro_batch":512}');
INSERT INTO axis_values VALUES(5,'batch.micro_batch',X'8c23781e51d99a331d00f1f735199b70911a47b8052262bcf16802c280ebac6a','{"batch.micro_batch":2}');
INSERT INTO axis_values VALUES(6,'batch.sequence_length',X'694a08db8ae7fa39e0e5fa5dc6cad3072e7f55654e0fa58cb398f5709dd31719','{"batch.sequence_length":256}');
INSERT INTO axis_values VALUES(7,'code',X'9b6cd6f0eb2f010b15932142e9d82d9d4b6de2cbf655b2781969c8ce347ee5d0','{"code.imported_digest":"4a89816c9002d40529cf7021f07a1002dd14ed3efbca77d344c07aa57bd18f22"}');
INSERT INTO axis_values VALUES(8,'compile.warmup_policy',X'ddf0ff78e3bbd1b9afd8695544399de482fa38a73ea4ecb0a1089db8d123cdc4','{"compile.warmup_policy":"20 steps"}');
INSERT INTO axis_values VALUES(9,'cuda_graphs',X'aa4047646d8a9f458e01f7a328d0bb226213033be3041189656c6d9703cd9b0b','{"compile.cuda_graph_implementation":"off","compile.cuda_graph_scope":"off"}');
INSERT INTO axis_values VALUES(10,'data.dataset',X'445e1fab33f9928d16a060b4a6c58e41633002bfd4a061e65b78a90111dea55c','{"data.dataset":"python-stdlib-12-modules-3.11"}');
INSERT INTO axis_values VALUES(11,'data.tokenizer',X'6dd9c18933f34bc526efb7935d791851c5a511f8ff1d1d08cb378fb6d74665bd','{"data.tokenizer":"bytes"}');
INSERT INTO axis_values VALUES(12,'dimensions',X'15be08a06fdc9c9d8d5d539debf2ac46f4bcdfcea2235e2b2ce68a527d24ad68','{"model.expert_ffn":0,"model.ffn":512,"model.ffn_projections":2,"model.head_dim":32,"model.heads":4,"model.hidden":128,"model.kv_heads":4,"model.shared_expert_ffn":0,"model.ssm_groups":"off","model.ssm_heads":"off","model.ssm_state":"off","model.vocabulary":256}');
INSERT INTO axis_values VALUES(13,'features.*',X'76309a355cffb378554ed3c26b55c454fc640f0292160ba61425e5a909c43885','{"features.complete":true}');
INSERT INTO axis_values VALUES(14,'features.activation',X'66a801f09769d09213b1a9f473f96c38c657581f63182693d6dd47e1956a46f0','{"features.activation":"gelu"}');
INSERT INTO axis_values VALUES(15,'features.adamw',X'ae97f7daf4d03f3f6feccde54faf5bbfa2b120fe4d6541c5fa02cf3816362c52','{"features.adamw":"betas 0.9, 0.95; weight decay 0.1"}');
INSERT INTO axis_values VALUES(16,'features.address_space_limit_bytes',X'7520671a64544045feeb07d238c7c63fc84e13279a508aa3955abdd4e9563e40','{"features.address_space_limit_bytes":"3000000000"}');
INSERT INTO axis_values VALUES(17,'features.biases',X'e1f5ac008692ae640373773e835f1752ac71024b6a53f8587d4a2b3e9405bde4','{"features.biases":"false"}');
INSERT INTO axis_values VALUES(18,'features.dropout',X'acbbe900670c9f7218a2b06b7b451d9e9b8bfee039abe9f3c327995ce19d8f54','{"features.dropout":"0"}');
INSERT INTO axis_values VALUES(19,'features.gradient_clipping',X'2fda91a88acfff41f9c4179b437967db7984baf464901aa5c6356f9745bfd966','{"features.gradient_clipping":"1"}');
INSERT INTO axis_values VALUES(20,'features.normalization',X'0042d54ec317d2dd3d73e7a6c530475df0dab50ad81363a68e8be2bd37b5535d','{"features.normalization":"layer_norm before each sub-block"}');
INSERT INTO axis_values VALUES(21,'features.positions',X'e13b10fbf19bf854f86652930b005930de7b4d2ef96e45bd31a9409ca0a6da1a','{"features.positions":"learned"}');
INSERT INTO axis_values VALUES(22,'features.processors',X'55501bd9d27b7301afe9b488d7eed71d10b67e38bbf9716140129c330e6fecec','{"features.processors":"1"}');
INSERT INTO axis_values VALUES(23,'features.sdpa_inner_backend',X'b79ec76ee4bf40976064aeb4e60962bf259649a37cb98ef1c5eba586fcdc7032','{"features.sdpa_inner_backend":"none"}');
INSERT INTO axis_values VALUES(24,'features.tensor_statistics',X'24eda867fb1ff1a9cdf1fb3992246185ed844a070b4207f12e071058cc5fa868','{"features.tensor_statistics":"false"}');
INSERT INTO axis_values VALUES(25,'features.threads',X'cc0b1f6ab0b7f894106f83056c41a0901f000d960883375b0b30d6a227bb4daa','{"features.threads":"1"}');
INSERT INTO axis_values VALUES(26,'features.validation_in_loop',X'887f5b7e3cdc3186ab629e262510849f6a4b4e71bca78946c85b318679afbbf1','{"features.validation_in_loop":"false"}');
INSERT INTO axis_values VALUES(27,'flags.*',X'5ed875edbe59e44997599ee1e98ed1d380f4bc83ea2820036c8190cba7be4b76','{"flags.complete":true}');
INSERT INTO axis_values VALUES(28,'flags.LANG',X'3d096052b74206ce58de704445a9915495dab450c0b99c166ad9196b19f289f5','{"flags.LANG":"C.UTF-8"}');
INSERT INTO axis_values VALUES(29,'flags.MKL_NUM_THREADS',X'a80ef3c341d512df4ff54b8dfec4f0aedcbc03e095fdd68b87adf6611a828c42','{"flags.MKL_NUM_THREADS":"1"}');
INSERT INTO axis_values VALUES(30,'flags.OMP_NUM_THREADS',X'415ccc0a425b60a58b79d23748d2ded872a1235768d9f6fa12ac8912d2e26be2','{"flags.OMP_NUM_THREADS":"1"}');
INSERT INTO axis_values VALUES(31,'flags.TORCHINDUCTOR_FORCE_DISABLE_CACHES',X'b6a107b802dc6e5b003f114f291255f296333e8ef36d40d4592e0b5615358a2e','{"flags.TORCHINDUCTOR_FORCE_DISABLE_CACHES":"1"}');
INSERT INTO axis_values VALUES(32,'hardware.accelerator',X'cb2be287dc45f9423f9f83bcd22e96f844403bc8d4678f01c055c4fa68368e44','{"hardware.accelerator":"cpu"}');
INSERT INTO axis_values VALUES(33,'model.attention_kinds',X'7abc0cb44c61a83232149e8966dcee36036395f0a096c46081a5f114eb95e160','{"model.attention_kinds":"full"}');
INSERT INTO axis_values VALUES(34,'model.mtp_depth',X'27d39319daa044fe98952cbb6d58935aea121fb4004dac5e646f80c044cda8e6','{"model.mtp_depth":0}');
INSERT INTO axis_values VALUES(35,'model.mtp_wiring',X'16fff69aef6e3d707913baed64e253c3dd539aa8ff4768b324ed85ef4e8e3928','{"model.mtp_wiring":"off"}');
INSERT INTO axis_values VALUES(36,'model.ssm_variant',X'806a45903318a9a3010c28c09d896e84a63e5c7c12b7d0a609bde9bf47fd9184','{"model.ssm_variant":"off"}');
INSERT INTO axis_values VALUES(37,'model.tied_embeddings',X'325b33e41b66c7edc1db3eb25cd6b1d6f2790309078fe186c3372812fc815a2e','{"model.tied_embeddings":false}');
INSERT INTO axis_values VALUES(38,'numerics.learning_rate',X'7955a50c5ccea6da85d260059278d98ff1ce6cdecc2c78cfe9f34aada1a1f89a','{"numerics.learning_rate":0.0003}');
INSERT INTO axis_values VALUES(40,'numerics.parameter_dtype',X'0cf62c63caed4ce537e9edb3cf437e72b6cd3cc0badc0b9ea4fa95740d3ee8d9','{"numerics.parameter_dtype":"fp32"}');
INSERT INTO axis_values VALUES(41,'numerics.reduction_dtype',X'bda6f03b3c2118aab7b9e5140a205344f018d524df989c45c188ed4f5dceeaf4','{"numerics.reduction_dtype":"fp32"}');
INSERT INTO axis_values VALUES(42,'numerics.schedule',X'308c937e2c66c28f5abbcb43c20dbd52ed9306346133982fb0ff08aea358c186','{"numerics.schedule":"constant"}');
INSERT INTO axis_values VALUES(43,'optimizer',X'ccbc78b7ed4af415a8802aec2f5b4e4272c38c95bb6d5bd96f2f349fa7cd42bb','{"numerics.optimizer":"adamw_fused","numerics.optimizer_other":"off","numerics.optimizer_state_dtype":"fp32"}');
INSERT INTO axis_values VALUES(44,'parallelism.context',X'695e7c16fb7fe32cec3c10347177664759490a3c6616381327fe4853849ea2cb','{"parallelism.context":1}');
INSERT INTO axis_values VALUES(45,'parallelism.expert',X'3344bb4a31a031e4872e716778402b4e6c8ec73e7b8b29b9fdb45f6907e403e8','{"parallelism.expert":1}');
INSERT INTO axis_values VALUES(46,'parallelism.expert_tensor',X'8eae55556ebd3f9959bce379f0a741857ed04c301eb3ab849c11224ea2fc9343','{"parallelism.expert_tensor":1}');
INSERT INTO axis_values VALUES(47,'parallelism.pipeline',X'16a29ece60db80941d4ba9aca6e2b71931c5beb9a3fc72d54e046ab6757ac17f','{"parallelism.pipeline":1}');
INSERT INTO axis_values VALUES(48,'parallelism.schedule',X'e155dbbff7232c8b3530888c49b72306400b282dc1fea6dc52758b21a1302b3f','{"parallelism.schedule":"off"}');
INSERT INTO axis_values VALUES(49,'parallelism.sequence',X'd9c42e00b02760a929b78380d962757296f454c7f219d27bfcdc777f717192d9','{"parallelism.sequence":"off"}');
INSERT INTO axis_values VALUES(50,'parallelism.stage_layout',X'bb04371d1ee66d096061ea3235b608a3e507307ba71f2758eef792a401476d60','{"parallelism.stage_layout":"off"}');
INSERT INTO axis_values VALUES(51,'parallelism.tensor',X'cb9568666cebb0305ab251b3f4535bcffbce3c9de90f55bb83179dd751a2eb3d','{"parallelism.tensor":1}');
INSERT INTO axis_values VALUES(52,'parallelism.virtual_pipeline',X'781ba551ea9bd0fcb9499a35bb952ff6e7c73321e99e94cf61aaa4f8f21b3979','{"parallelism.virtual_pipeline":"off"}');
INSERT INTO axis_values VALUES(53,'patches.*',X'd1a241013bed492c8d13e516735636152da1623e8a1ca8d54306b985070629ed','{"patches.complete":true}');
INSERT INTO axis_values VALUES(54,'path.attention',X'51c1be9955ac8d82df9a74fd9a714afe0fbd9229f1f2108144e5fd641a7e52bc','{"path.attention":"sdpa_flash"}');
INSERT INTO axis_values VALUES(55,'path.attention',X'5fa8f0021c810952b362ec99951c4df39cc1d2afc6504ca9f49c4efe3a7c9686','{"path.attention":"sdpa_math"}');
INSERT INTO axis_values VALUES(56,'path.dispatch',X'bb0ca6e5a443697e30c2a54acc9805bb8f10227034c03e1d90adb12b50f04645','{"path.dispatch":"off"}');
INSERT INTO axis_values VALUES(57,'path.framework',X'3086d8b6d38a2562e41ac8b169c59d1843659c6a3c00d8eff39abda84906d81f','{"path.framework":"torch"}');
INSERT INTO axis_values VALUES(58,'path.gemm',X'b2aac04d916bf9352e98e78bdd30f73abb9503c0320f91724de908916ca9f028','{"path.gemm":"aten_fp32"}');
INSERT INTO axis_values VALUES(59,'path.mtp_cross_entropy',X'6081f114c7898dddb9add8d8b715db0875391dd34a6df4248e7271fb873734fe','{"path.mtp_cross_entropy":"off"}');
INSERT INTO axis_values VALUES(60,'path.overlap',X'6bde4c6ec23b4f2882159455715f6da2909222269e08b175e295b8976f29e82e','{"path.overlap":"off"}');
INSERT INTO axis_values VALUES(61,'path.runtime',X'c8dbdf3ce85356120844cbb6354693eac5aa3c9c9ff693f169e7dec2a0c86551','{"path.runtime":"cpu"}');
INSERT INTO axis_values VALUES(62,'pattern',X'd1e4e1e1356ce460e47ec46bb11f4e0e4fb94d6b56bca351fc89823e825aa6ce','{"model.alphabet":"nemo","model.depth":2,"model.pattern":"[*-][*-]"}');
INSERT INTO axis_values VALUES(63,'platform',X'd48100845dab0b825641d7082f119f9783ad60fac97bcec2f802a66215a14112','{"platform.os":"Linux 6.18.44-fc-v595","platform.python":"3.11.7"}');
INSERT INTO axis_values VALUES(64,'posture',X'50cb6a760684a59a733c0980586e852cb31a77cbe622a0d335901838d0e2c877','{"compile.backend":"off","compile.posture":"eager","compile.regions":"off"}');
INSERT INTO axis_values VALUES(65,'precision',X'365f15af90fd7496f8965a58cd7f078f01f32317c0a67d6fd797b86001bb8778','{"numerics.compute_dtype":"fp32","numerics.fp8_recipe":"off","numerics.fp8_scope":"off"}');
INSERT INTO axis_values VALUES(66,'recompute',X'e4b2cffee9d6f51cd9f64b9085e21f23a34ec52ba5ea309dd2ef770b8e5e5a6e','{"numerics.recompute":"off"}');
INSERT INTO axis_values VALUES(67,'routing',X'4e910c00c4aedf7df119228b09f5f75c610a3fdc17881e1cf608036e55c98fbc','{"model.capacity_factor":0,"model.experts":0,"model.top_k":0}');
INSERT INTO axis_values VALUES(68,'topology',X'4b30100fd428be12f0de57d953eb907268a1556c9112e7054f6693099f42df09','{"hardware.chips":1,"hardware.hosts":1}');
INSERT INTO axis_values VALUES(69,'wheels',X'e4a47898c3ee0e4bc65e51541906dc7b3c5c84597f65d26779d4cb71e09e1e83','{"wheels.complete":true,"wheels.filelock":"4.2.11","wheels.fsspec":"2026.9.0","wheels.jax":"0.10.2","wheels.jaxlib":"0.10.2","wheels.jinja2":"3.1.6","wheels.markupsafe":"3.0.4","wheels.ml-dtypes":"0.6.0","wheels.mpmath":"1.3.0","wheels.networkx":"3.6.1","wheels.numpy":"2.4.6","wheels.opt-einsum":"3.4.0","wheels.pip":"23.2.1","wheels.scipy":"1.17.1","wheels.setuptools":"84.2.1","wheels.sympy":"1.14.0","wheels.torch":"2.13.0+cpu","wheels.typing-extensions":"4.16.0"}');
CREATE TABLE configurations ( /* Every combination of axis values, once */
	seq INTEGER NOT NULL /* Number of the configuration */, 
	digest BIGINT NOT NULL /* Sum of the digests of its parts, modulo 2^64, signed: what one axis adds can be taken out */, 
	catalogue BIGINT NOT NULL /* Digest of the catalogue of axes and of the lane that read the receipt, signed */, 
	lane VARCHAR NOT NULL /* run.lane, its first 200 characters */, 
	anchor VARCHAR /* What fills all that is unstated: the context, else the receipt's own id; null if all is stated */, 
	line BIGINT /* Digest without code, wheels, image and driver; null where what else is unstated is one receipt's */, 
	whole BLOB NOT NULL /* 16 bytes of SHA-256 over all of it, compared on every hit */, 
	value_numbers BLOB NOT NULL /* Numbers of its axis values, ascending, 4 bytes each */, 
	CONSTRAINT configurations_pkey PRIMARY KEY (seq), 
	CONSTRAINT configurations_digest_whole_key UNIQUE (digest, whole)
);
INSERT INTO configurations VALUES(1,-9159850083052059352,-4275203724257216543,'cpu-torch','f7c322ad013a11acda8cdde9abe0ec95fbeebcbc3e164f366b1c2e6d7f69bc2e',-7236752355649572522,X'47e359ec9ae7cecdb8683aeeef618212',X'010000000300000004000000060000000700000008000000090000000a0000000b0000000c0000000d0000000e0000000f000000100000001100000012000000130000001400000015000000160000001700000018000000190000001a0000001b0000001c0000001d0000001e0000001f0000002000000021000000220000002300000024000000250000002600000028000000290000002a0000002b0000002c0000002d0000002e0000002f0000003000000031000000320000003300000034000000350000003700000038000000390000003a0000003b0000003c0000003d0000003e0000003f000000400000004100000042000000430000004400000045000000');
INSERT INTO configurations VALUES(2,-7457673843906553931,-4275203724257216543,'cpu-torch','f7c322ad013a11acda8cdde9abe0ec95fbeebcbc3e164f366b1c2e6d7f69bc2e',-5534576116504067101,X'07298f696f309c3277b57ef5fe9d1de5',X'010000000200000005000000060000000700000008000000090000000a0000000b0000000c0000000d0000000e0000000f0000001100000012000000130000001400000015000000160000001700000018000000190000001a0000001b0000001c0000001d0000001e0000001f0000002000000021000000220000002300000024000000250000002600000028000000290000002a0000002b0000002c0000002d0000002e0000002f0000003000000031000000320000003300000034000000350000003600000038000000390000003a0000003b0000003c0000003d0000003e0000003f000000400000004100000042000000430000004400000045000000');
INSERT INTO configurations VALUES(3,-6749264917579053853,-4275203724257216543,'cpu-torch','f7c322ad013a11acda8cdde9abe0ec95fbeebcbc3e164f366b1c2e6d7f69bc2e',-4826167190176567023,X'0ddb9427efbd50a7e41210e91fa813fa',X'010000000200000005000000060000000700000008000000090000000a0000000b0000000c0000000d0000000e0000000f0000001100000012000000130000001400000015000000160000001700000018000000190000001a0000001b0000001c0000001d0000001e0000001f0000002000000021000000220000002300000024000000250000002600000028000000290000002a0000002b0000002c0000002d0000002e0000002f0000003000000031000000320000003300000034000000350000003700000038000000390000003a0000003b0000003c0000003d0000003e0000003f000000400000004100000042000000430000004400000045000000');
CREATE TABLE axes ( /* One row an axis of a configuration: equal leave-one-out digests are one axis apart */
	value INTEGER NOT NULL /* The axis value */, 
	configuration INTEGER NOT NULL /* The configuration */, 
	leave_one_out BIGINT /* The configuration's digest without this axis; null where none can share it */, 
	CONSTRAINT axes_pkey PRIMARY KEY (value, configuration)
)
 WITHOUT ROWID

;
INSERT INTO axes VALUES(32,3,-9064061895992898674);
INSERT INTO axes VALUES(43,1,-9062094913062061571);
INSERT INTO axes VALUES(41,3,-8870840349985088319);
INSERT INTO axes VALUES(9,2,-8868888892013784277);
INSERT INTO axes VALUES(30,2,-8771598051377333548);
INSERT INTO axes VALUES(38,2,-8641578011524529055);
INSERT INTO axes VALUES(42,3,-8559956586615892222);
INSERT INTO axes VALUES(9,3,-8160479965686284199);
INSERT INTO axes VALUES(30,3,-8063189125049833470);
INSERT INTO axes VALUES(38,3,-7933169085197028977);
INSERT INTO axes VALUES(26,2,-7814986639122013860);
INSERT INTO axes VALUES(64,1,-7776545218471583336);
INSERT INTO axes VALUES(29,2,-7709523608739591465);
INSERT INTO axes VALUES(4,1,-7566589625242025618);
INSERT INTO axes VALUES(47,2,-7563924518280029878);
INSERT INTO axes VALUES(43,2,-7359918673916556150);
INSERT INTO axes VALUES(51,1,-7359398426163160717);
INSERT INTO axes VALUES(26,3,-7106577712794513782);
INSERT INTO axes VALUES(27,1,-7065259016385108371);
INSERT INTO axes VALUES(67,1,-7033272111408390579);
INSERT INTO axes VALUES(29,3,-7001114682412091387);
INSERT INTO axes VALUES(47,3,-6855515591952529800);
INSERT INTO axes VALUES(50,1,-6699831098868117175);
INSERT INTO axes VALUES(43,3,-6651509747589056072);
INSERT INTO axes VALUES(49,1,-6601549052887415424);
INSERT INTO axes VALUES(63,1,-6479737656994313867);
INSERT INTO axes VALUES(13,1,-6364343709063921140);
INSERT INTO axes VALUES(64,2,-6074368979326077915);
INSERT INTO axes VALUES(51,2,-5657222187017655296);
INSERT INTO axes VALUES(24,1,-5574184942163051369);
INSERT INTO axes VALUES(20,1,-5507449594239338156);
INSERT INTO axes VALUES(64,3,-5365960052998577837);
INSERT INTO axes VALUES(27,2,-5363082777239602950);
INSERT INTO axes VALUES(67,2,-5331095872262885158);
INSERT INTO axes VALUES(50,2,-4997654859722611754);
INSERT INTO axes VALUES(51,3,-4948813260690155218);
INSERT INTO axes VALUES(49,2,-4899372813741910003);
INSERT INTO axes VALUES(63,2,-4777561417848808446);
INSERT INTO axes VALUES(13,2,-4662167469918415719);
INSERT INTO axes VALUES(27,3,-4654673850912102872);
INSERT INTO axes VALUES(67,3,-4622686945935385080);
INSERT INTO axes VALUES(57,1,-4522167688753665080);
INSERT INTO axes VALUES(50,3,-4289245933395111676);
INSERT INTO axes VALUES(49,3,-4190963887414409925);
INSERT INTO axes VALUES(63,3,-4069152491521308368);
INSERT INTO axes VALUES(13,3,-3953758543590915641);
INSERT INTO axes VALUES(53,1,-3888923484059667906);
INSERT INTO axes VALUES(24,2,-3872008703017545948);
INSERT INTO axes VALUES(20,2,-3805273355093832735);
INSERT INTO axes VALUES(21,1,-3775765746419564806);
INSERT INTO axes VALUES(58,1,-3665678709153047743);
INSERT INTO axes VALUES(31,1,-3494318852698352464);
INSERT INTO axes VALUES(55,1,-3313103590997778670);
INSERT INTO axes VALUES(46,1,-3226890951757447454);
INSERT INTO axes VALUES(24,3,-3163599776690045870);
INSERT INTO axes VALUES(20,3,-3096864428766332657);
INSERT INTO axes VALUES(57,2,-2819991449608159659);
INSERT INTO axes VALUES(1,1,-2730804654783266987);
INSERT INTO axes VALUES(16,1,-2356237596864175382);
INSERT INTO axes VALUES(53,2,-2186747244914162485);
INSERT INTO axes VALUES(62,1,-2136342685125851461);
INSERT INTO axes VALUES(57,3,-2111582523280659581);
INSERT INTO axes VALUES(21,2,-2073589507274059385);
INSERT INTO axes VALUES(58,2,-1963502470007542322);
INSERT INTO axes VALUES(56,1,-1827322958124761824);
INSERT INTO axes VALUES(31,2,-1792142613552847043);
INSERT INTO axes VALUES(15,1,-1742365374797774274);
INSERT INTO axes VALUES(46,2,-1524714712611942033);
INSERT INTO axes VALUES(53,3,-1478338318586662407);
INSERT INTO axes VALUES(11,1,-1434594115943630504);
INSERT INTO axes VALUES(6,1,-1419750426973934101);
INSERT INTO axes VALUES(21,3,-1365180580946559307);
INSERT INTO axes VALUES(58,3,-1255093543680042244);
INSERT INTO axes VALUES(18,1,-1176960973814554052);
INSERT INTO axes VALUES(31,3,-1083733687225346965);
INSERT INTO axes VALUES(1,2,-1028628415637761566);
INSERT INTO axes VALUES(25,1,-929096740964968694);
INSERT INTO axes VALUES(54,2,-902518425524773171);
INSERT INTO axes VALUES(55,3,-902518425524773171);
INSERT INTO axes VALUES(46,3,-816305786284441955);
INSERT INTO axes VALUES(19,1,-620896625996011970);
INSERT INTO axes VALUES(62,2,-434166445980346040);
INSERT INTO axes VALUES(1,3,-320219489310261488);
INSERT INTO axes VALUES(59,1,-319135524374322733);
INSERT INTO axes VALUES(66,1,-220342173355155103);
INSERT INTO axes VALUES(56,2,-125146718979256403);
INSERT INTO axes VALUES(2,2,-76943996000044664);
INSERT INTO axes VALUES(15,2,-40189135652268853);
INSERT INTO axes VALUES(40,1,88931643743333805);
INSERT INTO axes VALUES(44,1,115935976825729303);
INSERT INTO axes VALUES(14,1,185844632719903528);
INSERT INTO axes VALUES(11,2,267582123201874917);
INSERT INTO axes VALUES(62,3,274242480347154038);
INSERT INTO axes VALUES(6,2,282425812171571320);
INSERT INTO axes VALUES(33,1,417754294068431441);
INSERT INTO axes VALUES(8,1,503966289953001988);
INSERT INTO axes VALUES(18,2,525215265330951369);
INSERT INTO axes VALUES(56,3,583262207348243675);
INSERT INTO axes VALUES(2,3,631464930327455414);
INSERT INTO axes VALUES(15,3,668219790675231225);
INSERT INTO axes VALUES(7,1,742047276249407280);
INSERT INTO axes VALUES(10,1,765809908038303800);
INSERT INTO axes VALUES(25,2,773079498180536727);
INSERT INTO axes VALUES(11,3,975991049529374995);
INSERT INTO axes VALUES(6,3,990834738499071398);
INSERT INTO axes VALUES(19,2,1081279613149493451);
INSERT INTO axes VALUES(18,3,1233624191658451447);
INSERT INTO axes VALUES(69,1,1308094358758512462);
INSERT INTO axes VALUES(59,2,1383040714771182688);
INSERT INTO axes VALUES(25,3,1481488424508036805);
INSERT INTO axes VALUES(66,2,1481834065790350318);
INSERT INTO axes VALUES(19,3,1789688539476993529);
INSERT INTO axes VALUES(12,1,1790241119228742190);
INSERT INTO axes VALUES(40,2,1791107882888839226);
INSERT INTO axes VALUES(44,2,1818112215971234724);
INSERT INTO axes VALUES(14,2,1888020871865408949);
INSERT INTO axes VALUES(68,1,1971578843877116698);
INSERT INTO axes VALUES(48,1,2017711607456095850);
INSERT INTO axes VALUES(59,3,2091449641098682766);
INSERT INTO axes VALUES(36,1,2117142949692482676);
INSERT INTO axes VALUES(33,2,2119930533213936862);
INSERT INTO axes VALUES(35,1,2122498063790951896);
INSERT INTO axes VALUES(66,3,2190242992117850396);
INSERT INTO axes VALUES(8,2,2206142529098507409);
INSERT INTO axes VALUES(7,2,2444223515394912701);
INSERT INTO axes VALUES(3,1,2452260788118293770);
INSERT INTO axes VALUES(10,2,2467986147183809221);
INSERT INTO axes VALUES(40,3,2499516809216339304);
INSERT INTO axes VALUES(44,3,2526521142298734802);
INSERT INTO axes VALUES(14,3,2596429798192909027);
INSERT INTO axes VALUES(5,2,2759994957882202129);
INSERT INTO axes VALUES(33,3,2828339459541436940);
INSERT INTO axes VALUES(61,1,2862271367732361787);
INSERT INTO axes VALUES(8,3,2914551455426007487);
INSERT INTO axes VALUES(69,2,3010270597904017883);
INSERT INTO axes VALUES(7,3,3152632441722412779);
INSERT INTO axes VALUES(10,3,3176395073511309299);
INSERT INTO axes VALUES(65,1,3374745372395183958);
INSERT INTO axes VALUES(5,3,3468403884209702207);
INSERT INTO axes VALUES(23,1,3470782529323389232);
INSERT INTO axes VALUES(12,2,3492417358374247611);
INSERT INTO axes VALUES(68,2,3673755083022622119);
INSERT INTO axes VALUES(52,1,3687401089914682857);
INSERT INTO axes VALUES(69,3,3718679524231517961);
INSERT INTO axes VALUES(48,2,3719887846601601271);
INSERT INTO axes VALUES(36,2,3819319188837988097);
INSERT INTO axes VALUES(35,2,3824674302936457317);
INSERT INTO axes VALUES(12,3,4200826284701747689);
INSERT INTO axes VALUES(68,3,4382164009350122197);
INSERT INTO axes VALUES(48,3,4428296772929101349);
INSERT INTO axes VALUES(45,1,4464048216735186143);
INSERT INTO axes VALUES(36,3,4527728115165488175);
INSERT INTO axes VALUES(35,3,4533083229263957395);
INSERT INTO axes VALUES(61,2,4564447606877867208);
INSERT INTO axes VALUES(37,1,4906518344530656527);
INSERT INTO axes VALUES(65,2,5076921611540689379);
INSERT INTO axes VALUES(23,2,5172958768468894653);
INSERT INTO axes VALUES(61,3,5272856533205367286);
INSERT INTO axes VALUES(52,2,5389577329060188278);
INSERT INTO axes VALUES(34,1,5488753283829324729);
INSERT INTO axes VALUES(65,3,5785330537868189457);
INSERT INTO axes VALUES(60,1,5835898756686888059);
INSERT INTO axes VALUES(23,3,5881367694796394731);
INSERT INTO axes VALUES(52,3,6097986255387688356);
INSERT INTO axes VALUES(17,1,6104464855006085476);
INSERT INTO axes VALUES(45,2,6166224455880691564);
INSERT INTO axes VALUES(28,1,6289849029996680664);
INSERT INTO axes VALUES(22,1,6367849085405294596);
INSERT INTO axes VALUES(37,2,6608694583676161948);
INSERT INTO axes VALUES(45,3,6874633382208191642);
INSERT INTO axes VALUES(32,1,6972097012243647443);
INSERT INTO axes VALUES(41,1,7165318558251457798);
INSERT INTO axes VALUES(34,2,7190929522974830150);
INSERT INTO axes VALUES(37,3,7317103510003662026);
INSERT INTO axes VALUES(42,1,7476202321620653895);
INSERT INTO axes VALUES(60,2,7538074995832393480);
INSERT INTO axes VALUES(17,2,7806641094151590897);
INSERT INTO axes VALUES(9,1,7875678942550261918);
INSERT INTO axes VALUES(34,3,7899338449302330228);
INSERT INTO axes VALUES(30,1,7972969783186712647);
INSERT INTO axes VALUES(28,2,7992025269142186085);
INSERT INTO axes VALUES(22,2,8070025324550800017);
INSERT INTO axes VALUES(38,1,8102989823039517140);
INSERT INTO axes VALUES(60,3,8246483922159893558);
INSERT INTO axes VALUES(17,3,8515050020479090975);
INSERT INTO axes VALUES(32,2,8674273251389152864);
INSERT INTO axes VALUES(28,3,8700434195469686163);
INSERT INTO axes VALUES(22,3,8778434250878300095);
INSERT INTO axes VALUES(41,2,8867494797396963219);
INSERT INTO axes VALUES(26,1,8929581195442032335);
INSERT INTO axes VALUES(29,1,9035044225824454730);
INSERT INTO axes VALUES(42,2,9178378560766159316);
INSERT INTO axes VALUES(47,1,9180643316284016317);
CREATE TABLE receipts ( /* One row a receipt: what lists, reports and rules look it up by */
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT /* Number in the order in which the store took receipts in */, 
	id VARCHAR NOT NULL /* SHA-256 of the document as it came, in hex */, 
	launch VARCHAR NOT NULL /* run.launch, the unit of replication */, 
	generation SMALLINT NOT NULL /* 0 for a launch's first receipt here, 1 for the one after it; two writers cannot both take one */, 
	lane VARCHAR NOT NULL /* run.lane, its first 200 characters */, 
	kind VARCHAR NOT NULL /* run.kind: training, microbench, profile, serving */, 
	outcome VARCHAR NOT NULL /* run.outcome: ok, oom, crash, hang, nan, preempted, unknown */, 
	provenance VARCHAR NOT NULL /* run.provenance: measured, quoted, projected, illustrative */, 
	status VARCHAR NOT NULL /* Status when it was submitted: valid, open, invalid */, 
	path_answer VARCHAR NOT NULL /* Path when it was submitted: witnessed, unwitnessed, left */, 
	tainted VARCHAR NOT NULL /* Kinds of metric that errors spoil by that verdict: all, rate, mfu, …; none */, 
	undecided VARCHAR NOT NULL /* Kinds of metric that open questions are about by that verdict, likewise */, 
	schema_version VARCHAR NOT NULL /* Version of the document */, 
	started DATETIME NOT NULL /* run.started */, 
	finished DATETIME /* run.finished */, 
	submitted_at DATETIME NOT NULL /* When the store took it in */, 
	label VARCHAR /* run.label */, 
	session VARCHAR /* run.session, the launches that were made to answer one question */, 
	context VARCHAR /* run.context, the base configuration */, 
	host VARCHAR /* run.host */, 
	revision VARCHAR /* code.commit */, 
	supersedes VARCHAR /* run.supersedes.target, the launch or id that it replaces */, 
	supersedes_reason VARCHAR /* run.supersedes.reason */, 
	accelerator VARCHAR /* hardware.accelerator, by its name in the registry, else its first 200 characters */, 
	chips BIGINT /* hardware.chips */, 
	sequence_length BIGINT /* batch.sequence_length, tokens */, 
	micro_batch BIGINT /* batch.micro_batch, sequences */, 
	global_batch BIGINT /* batch.global_batch, sequences */, 
	depth BIGINT /* model.depth, blocks */, 
	model VARCHAR /* model.name */, 
	family VARCHAR /* model.family */, 
	tokens_per_second DOUBLE /* Tokens a second over all chips */, 
	tokens_per_second_per_chip DOUBLE /* Tokens a second a chip */, 
	step_seconds DOUBLE /* Median steady step, or the time stated; seconds */, 
	tflops_per_second_per_chip DOUBLE /* TFLOP/s a chip */, 
	mfu DOUBLE /* Model FLOPs utilization, a fraction */, 
	rate_source VARCHAR /* Where tokens_per_second came from: steps, unsteady, stated, derived */, 
	rate_of VARCHAR /* Which steps tokens_per_second is of, where it comes from them: tokens over the time of 12 of 20 steps */, 
	peak_bytes DOUBLE /* Highest live peak of a chip, bytes */, 
	peak_reserved_bytes DOUBLE /* Highest pool of a chip, bytes */, 
	compile_seconds DOUBLE /* Compile time, seconds */, 
	failure_phase VARCHAR /* failure.phase */, 
	failure_class VARCHAR /* failure.class */, 
	witness_for VARCHAR /* run.witness_for, the launch or id whose path it witnesses */, 
	geometry BIGINT /* Digest of the axes of the model but its depth, and of the accelerator */, 
	layout BIGINT /* Digest of the axes of parallelism but its tuned constants */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT receipts_id_key UNIQUE (id), 
	CONSTRAINT receipts_launch_generation_key UNIQUE (launch, generation)
);
INSERT INTO receipts VALUES(1,'e7ee1b18dd4e9a833f8d058cdbdd10aa380049460133e07c85ff286aa3f00c17','5eb60430-fd40-4e18-93fe-92d32f6768f8',0,'cpu-torch','training','ok','measured','valid','witnessed','none','none','1.0','2026-11-21 09:10:30.906271','2026-11-21 09:10:42.242997','2026-11-29 11:33:11.010405','cpu attention math 1',NULL,'f7c322ad013a11acda8cdde9abe0ec95fbeebcbc3e164f366b1c2e6d7f69bc2e','bench-cpu',NULL,NULL,NULL,'cpu',1,256,2,2,2,'decoder-2x128','dense',15976.689843095069591,15976.689843095069591,0.031818550000000000999,NULL,NULL,'steps','tokens over the time of 300 of 322 steps',376610816.0,NULL,0.0,NULL,NULL,NULL,1692483968090112425,-6671293071610826180,'user:root');
INSERT INTO receipts VALUES(2,'90b3f1a059150d214d2b5cf73bc575e911c350ce446533f1ec6953e2344e50f1','59418d39-6657-42fb-9b05-da87864a3c0a',0,'cpu-torch','training','ok','measured','valid','witnessed','none','none','1.0','2026-11-21 09:10:43.832150','2026-11-21 09:10:53.619764','2026-11-29 11:33:11.051604','cpu attention flash 1',NULL,'f7c322ad013a11acda8cdde9abe0ec95fbeebcbc3e164f366b1c2e6d7f69bc2e','bench-cpu',NULL,NULL,NULL,'cpu',1,256,2,2,2,'decoder-2x128','dense',18766.974581892336572,18766.974581892336572,0.026943200000000000482,NULL,NULL,'steps','tokens over the time of 300 of 322 steps',360722432.0,NULL,0.0,NULL,NULL,NULL,1692483968090112425,-6671293071610826180,'user:root');
INSERT INTO receipts VALUES(4,'f49d9cccbb7a61c862e1f96ff0c35b987c81f796fc4a49ca8756d326b374f7f3','36f324a9-fddb-4eef-92d4-7b93d414951d',0,'cpu-torch','training','oom','measured','valid','unwitnessed','none','none','1.0','2026-11-21 09:14:53.258099','2026-11-21 09:15:00.217494','2026-11-29 11:33:11.077495','cpu oom 1',NULL,'f7c322ad013a11acda8cdde9abe0ec95fbeebcbc3e164f366b1c2e6d7f69bc2e','bench-cpu',NULL,NULL,NULL,'cpu',1,256,512,512,2,'decoder-2x128','dense',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'first_window','runtime_alloc',NULL,1692483968090112425,-6671293071610826180,'user:root');
CREATE TABLE verdicts ( /* What the rules said, and under which rule set; a later verdict does not replace an earlier one */
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT /* Number in the order in which verdicts were given */, 
	kind VARCHAR NOT NULL /* What was judged: receipt, comparison */, 
	status VARCHAR NOT NULL /* valid, open, invalid; accepted, rejected, inconclusive */, 
	metric VARCHAR /* The metric asked for, in a comparison */, 
	rules VARCHAR NOT NULL /* Digest of the rule set */, 
	judge VARCHAR NOT NULL /* Version of the judge */, 
	judged_at DATETIME NOT NULL /* When it was judged */, 
	codec VARCHAR NOT NULL /* How body is packed: zlib */, 
	body BLOB NOT NULL /* The verdict as JSON, packed */
);
INSERT INTO verdicts VALUES(1,'receipt','valid',NULL,'26680ff8cf44579f5fa3030b9453f7fa04a53a9b235fc3e93437ab59a2a94f48','1','2026-11-29 11:33:11.010405','zlib',X'785e358ed16e842010457f85ccb36d5040c1a7fe47d334230c4ae3a28171379ba6ffdeb8db3e9e99e4dcf30dd52f74c1cf2b959ab60c23b4af121a28e429ed0c23d040d44ead0d419343ab54b4411aebc314422b119595523bddcb56299283b726c6cef6882a4ae9db011a5871a21546f0fb21909932a72d8b0bf2225a68a032f25161842bae2940033bf20223dc1267aa95ce1363ca4c01c6f78f0662ca21e5b93e69c54c4ff90b6fc52f6ffdd97fac742abbbeb73246eba3d66670d1445452c9c969a3e210516a340addd42913bd22a7b41a70320e3b743a6a0b0d7c1d613e07ced4ffa4bfe9b960385f7cdf1f950ffebc2d7718216f622fdb5cf0222adeabe005592416b7b23189c4f0f30be8c67604');
INSERT INTO verdicts VALUES(2,'receipt','valid',NULL,'26680ff8cf44579f5fa3030b9453f7fa04a53a9b235fc3e93437ab59a2a94f48','1','2026-11-29 11:33:11.051604','zlib',X'785e358f516e83301044af62ed37ad0ceb8598afdea3aaaac5ac832b62105e124555ef5e91b49f3323cdbcf9861226b9f0e755b692960c3dd4af162ad824485a157af076c058b3255f931d9bda8dcd4021763804ea487c5d07241bc4b99610632da1f584d2a0734236d650c1cc83ccd0435877c3aa92352dd9c499cb648ebc28eb5ea0872bcf69840a56d6097ab825cd528a1c9672ca2a23f4ef1f15c494c794cfe5a966cef26c7fd1650bd35b7b1cd867392a9bb63dd9184f213a479d8f14192ddac13bc2d845b68e09d90f0d520c281e1d763c90e786bd8bee04157cede3f9183850ff91fea6cf1b8f47a4f7f541f9d09fb7e90e3de4c5acdb72def8620adf8bd189d52435b76d513149e1e71733ef7573');
INSERT INTO verdicts VALUES(4,'receipt','valid',NULL,'26680ff8cf44579f5fa3030b9453f7fa04a53a9b235fc3e93437ab59a2a94f48','1','2026-11-29 11:33:11.077495','zlib',X'785eed95cf6ea33010c65fc59ab337228140e0b4cfb0973d54111acc38b8059bb5c761a3aaefbe32fd93f4d05b2beda1378ce56f98f9e1ef7b84a0069ab03d930fc6596860bbc9408227456666684017755f2ba5baaec272ab0ee58eb6ba2eb5ce54beefea43a50e5b5dd5a5560516b5c243b52ffb7c57767955e84ae72061c48e466840cd513837892d48088c1c033470c6d1f42061461ea0816817c39642a0f492d158a61e9abba3046d6c6fec294073f708caf5040dfccab3a466714aab9bc3edaa2761a4f35afb3748f81329f073972fbb9cf49320e038c25102a696d3e6e64d092468176d0f0d58c783b1271106b704a13d4eb438ff20af8f410a1f2d9b89a44066b2a99e14b30b1c3d49a1dc3447a6b6e7cb4c2081fecea43875f82ade08142346ab06c103b2d06846ea85b1421b1fb85d8cedddf2f209d6d9a4d2bbf5bc25a1d036c27010a90711182f41dc4c250d3e76f7a4529baf8c3f9976b4f7b13fa596348e81242c68ce6969e3384a98bd733a017d92b71477578a2369fe2a7c692469dc5f34f92511f31438086785e1546e2580ccde74f1b9f47f8aa0bc2250031a4b7d7bfdafe133aed2e69ddecdad12df583ec05264f9158b3b936f473319fe18477218f4d88dc918f8cddf269a9cbfbc59dcf372a3063387bbecb899091fdaeec214e09ddd7d837907e698c2cca6a85173fcc1ceabe167ba363e8e94c26c5796874ceb83d245b1af6abdd7986779d6d5c53ed795c6acc07d8e75b7cbf75ae554e7455e61b7af718775a18b034858cd131a48b1f6eadb29a18e124e1ed7d04bd9917c645db7cb7059dd5fccde9d3c4e2224cb59b3c3b058bc631286e1e91fa35f9a6b');
CREATE TABLE supersessions ( /* Receipts that no longer stand */
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT /* Number in the order in which they were said */, 
	receipt VARCHAR NOT NULL /* Id of the receipt that no longer stands */, 
	successor VARCHAR /* Id of the receipt that replaces it; null where it was retracted, its own where that was withdrawn */, 
	reason VARCHAR NOT NULL /* Why */, 
	at DATETIME NOT NULL /* When it was said */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */
);
INSERT INTO supersessions VALUES(1,'f49d9cccbb7a61c862e1f96ff0c35b987c81f796fc4a49ca8756d326b374f7f3',NULL,'an example','2026-11-29 11:33:23.167884','user:root');
CREATE TABLE pins ( /* Named references with their history */
	seq INTEGER NOT NULL /* Number in the order in which pins were set; the last one of a name counts */, 
	name VARCHAR NOT NULL /* Name without the @ */, 
	receipt VARCHAR /* Id of the receipt; null where the pin was taken away */, 
	note VARCHAR /* Why it was set */, 
	at DATETIME NOT NULL /* When it was set */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT pins_pkey PRIMARY KEY (seq)
);
INSERT INTO pins VALUES(1,'golden','e7ee1b18dd4e9a833f8d058cdbdd10aa380049460133e07c85ff286aa3f00c17','the baseline','2026-11-29 11:33:15.316166','user:root');
CREATE TABLE purges ( /* Tombstones: a row here, and it alone, lets a receipt be deleted */
	receipt VARCHAR NOT NULL /* Id of the receipt that was erased */, 
	reason VARCHAR NOT NULL /* Why */, 
	at DATETIME NOT NULL /* When it was erased */, 
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */, 
	CONSTRAINT purges_pkey PRIMARY KEY (receipt)
);
INSERT INTO purges VALUES('30319f79597adad9eed43d204ce27faf3726883cfa28a43fdbd9b5d2577c8496','the command line held a token','2026-11-29 11:33:32.303462','user:root');
CREATE TABLE stores ( /* The store's own identity, one row */
	id VARCHAR NOT NULL /* UUID of this store */, 
	created_at DATETIME NOT NULL /* When it was made */, 
	made_by VARCHAR NOT NULL /* Version of the program that made it */, 
	CONSTRAINT stores_pkey PRIMARY KEY (id)
);
INSERT INTO stores VALUES('f4b96518-f985-44cc-8994-7cd0e3b22d96','2026-11-29 11:33:10.425230','0.2.0.dev0');
CREATE TABLE claim_subjects ( /* Which receipts a claim stood on when it was judged */
	verdict INTEGER NOT NULL /* The verdict */, 
	position SMALLINT NOT NULL /* 0, 1, 2 in the verdict's order */, 
	side VARCHAR NOT NULL /* baseline, candidate */, 
	receipt VARCHAR NOT NULL /* Id of the receipt, stored or not */, 
	CONSTRAINT claim_subjects_pkey PRIMARY KEY (verdict, position), 
	CONSTRAINT claim_subjects_verdict_fkey FOREIGN KEY(verdict) REFERENCES claim_verdicts (seq) ON DELETE CASCADE
)
 WITHOUT ROWID

;
CREATE TABLE placements ( /* Which configuration a receipt ran, and when */
	receipt INTEGER NOT NULL /* The receipt */, 
	configuration INTEGER NOT NULL /* Its configuration */, 
	at BIGINT /* run.started, in microseconds since 1970 */, 
	CONSTRAINT placements_pkey PRIMARY KEY (receipt), 
	CONSTRAINT placements_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq) ON DELETE CASCADE, 
	CONSTRAINT placements_configuration_fkey FOREIGN KEY(configuration) REFERENCES configurations (seq)
);
INSERT INTO placements VALUES(1,3,1795252230906271);
INSERT INTO placements VALUES(2,2,1795252243832150);
INSERT INTO placements VALUES(4,1,1795252493258099);
CREATE TABLE signatures ( /* What a launch is called before it is tried: the same signature failed or worked */
	receipt INTEGER NOT NULL /* The receipt */, 
	signature VARCHAR NOT NULL /* SHA-256 over what decides whether a launch fits, in hex */, 
	base BIGINT NOT NULL /* 8 bytes of the same without the pressures beside it, signed */, 
	outcome VARCHAR NOT NULL /* run.outcome: the receipt's own, so that a look-up reads no row of it */, 
	micro_batch BIGINT /* batch.micro_batch, sequences */, 
	sequence_length BIGINT /* batch.sequence_length, tokens */, 
	extras VARCHAR /* Features that are on and that the lane calls non-essential, as JSON */, 
	CONSTRAINT signatures_pkey PRIMARY KEY (receipt), 
	CONSTRAINT signatures_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq) ON DELETE CASCADE
);
INSERT INTO signatures VALUES(1,'75a5dda8a34abfe55a2cd1b5921e2f5d6c921a04cac9a3b1746fcf82e7d957f7',-6424394694895583750,'ok',2,256,'[]');
INSERT INTO signatures VALUES(2,'3e11f8086eaea47ff0cccf3816f968d53bb2570e8d75d172ae9a3e7f298d8b76',6397450723237193578,'ok',2,256,'[]');
INSERT INTO signatures VALUES(4,'8f4730f167c8c21e2702b5774a83f966143126e71ba83814813011fb1e086e74',-5961493586537199100,'oom',512,256,'[]');
CREATE TABLE documents ( /* The bytes of each receipt, never changed */
	receipt INTEGER NOT NULL /* The receipt, by its number */, 
	codec VARCHAR NOT NULL /* How body is packed: zlib */, 
	size INTEGER NOT NULL /* Bytes of the document as it came */, 
	body BLOB NOT NULL /* The document as it came, packed */, 
	CONSTRAINT documents_pkey PRIMARY KEY (receipt), 
	CONSTRAINT documents_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
);
INSERT INTO documents VALUES(1,'zlib',9715,X'785ead3acb8edc3892f7fe0a4297016632d58ce0db7bf2ba3ddb83edc7a0c77d581886c0949895ea524a5a4959e51ac3ffbe088a5466f9d1db83dd830d663018ef17a9faf00d63c55c9fc2d9570f619adba12f5eb0024a5eec686bbad06fc262ace8fca5af4fb4afc2417329f8fed848be9701ecde8963d83b6c041eb5d1f668238178ea103a3a548f17e69725f44b3bf4ecec9713832b521f12ce7e19a6fa9437eedbbea18d65f26ddff677193e5c967a38c733c37d068ed3f0107adfd7117e0e7ebe4ca1c9bbf3e2a725446ac851ef01f6086fb87b01fc85e0a5e31a0dfc85f3177c559eb1e2d8f6ed7cfaca1989254a74ce3c3f530ffd12de2f74e4686a81e81b0ec203f8baf1b66e9ae0fc21f0503b753c8470a80fb508a0e551687d801a836ecc51bb438d218b711ae648ef10fafab4afc74bdea887f3d9af061a9f96d3d0b38872f6d3fdfc6d13eaa109d3b7d17455b46a393eb1fdbe09e37262c8f6fb4fdcb1df0f9765bc2c2c22efc9457b287f9b879eedf7e1a16d425f87cf37b334e17dbb54c4b378c178822dfe6e2e5eb0b74513ce43b1634592aa78f70d631f09a9a0dfd7209bc238cced324c4fa4d514ead08ecb9c59b4e7712027564d7b1756a3486f9d055d3bceb1915ca1ab8f86231cb9f140b006646844381e6a6f4c23a4acb9f15e994303f688586c829cfcd43cfae946185fd7a10b935f868958dd5afed48ea41824c1c845f1f7466decfc721ca6f395da4008c50f6d7f79cf7409b694727facf70fcaa94c76f522a18912a03457e11e4f2174442011ab87f3d88585845da64b48e78f6d17baa1be270ab2c412b60c3bcef3186a8253f097aedc82fc37ff9ec0bc045ee20db06b0f5f80b7fd6f1e092e4a2875463ffbe9fe32cefe48f214a2e4a5dcb6ba7db33c8d81642f78a9af8ccf23451881a11457701f96c761ba8f428952979b0afde53cc6a8c0525e590fe3b20f6d3f5fc8d28528e595d2d88e04434196c8c0b96e572a5082b90187e5322ec3106d5c58f9ecc853620c25dc908f8940602c4194fc2f37e1b13c8d6d7fb70fef97d053518d446509a4fde6d263b726c7ef7af487973ffd07e1140fbebb44ebbe2a7f7df3d7bda5643a84e330856abaf44b1b8b21854224ce58f1e37ffe50fdf4eb8fd59bef7f79fdf2bb7f3c2702ffebf19f7ffcfbffe5f89b9f7f79f5fddf7efaeed7576f7efea5faebcfbfbc7a5d7df7b77fbcfcf71f5e57af5ebefafef51f176833d8e897fa1403e9cb26db108fc12f97e9773093897cbdb40f9efa1119f62e749b037de3cf8f043c84c5cf8c976e47ffa97f638fa1bd3b2dac09b57f62fc1a2487d6cf91e3d17773cec7661ac6e142758a97b924de4dbe6943bf5475d78e14265436b6dd7e98cebe6bffb949d5f9a730550466abbb59f0f589cd97c3fe10533d1d8c6533875a17fcd45f5bdf380d7598e761a2cd5cb2283487a99a17bfb4f3d2d6f327b23ff8ae6da21855db57dd305032dd222ca729f866be213937a3afdabe0f5375f0f57d585b533ff4e11af5e7a109340f2417f63e066eee0b7b7c0fb8cd0e477f6ebb98794de8e790c123f5ad29faeced9ff7efe85fdef2dd78f28740162ffad8725678ec79c50b8609efd4364d200a803683923232fdbe7fa84e9f80e877d5b4546944a6743c12190537bfab711a7e0b35996ebee1f930d4fe70e97c6c6da8743a10de8f618acd23c7c07919ab2c70862d6d68aa703e84a669fb58366e5de17323af6860a2dd02d9f1d27559ffd14ffe1c9630cdd5322c9e1c201d5a9ec9dfecc7a4081bc2e63842e9bad0b533e99fdcb70651710d81559bea2bf01bc4eb9c9421633b86aeed8975063db4d372f15df585adc62ffe06730eff7da1f1241b6613fb4045e32af0b9ada7a1cac0ec9abb6e38f8ee3370265a75a1bf8beeb8bacdd7f5e57ce96282901c1bc3fe720ed39a4e8927f5eacb12aad807c937c7516c9df638da6a0a75bbeec45c493b63f6c9970f4ea1b9c418fbf2f6302eedb9fd6788934b2c67d5f1325f6bc2b65f0dcb69c5ba657edda602f115d9639969fbbb6af27112e125e75c240674ad682e1dc18b7ae8e7c5f74b663e873854038a9c6d5348562a3e11c4377ea4b8257316f7ed4d49f9f8e9d1ca8f63d7862bc6e613a2dd4651924bc661a60e4198c1df85290bf669d94ae0473f9d2f63350e5d5b53f616c8d9bc84711b4ceb4be3abbbc98fa7aaa5c1ec1c7aaaab31349ea953fbfa1462d18dcc87e37123b1ca58cda11efa98c3393993f45f0255feb884a95ae5bbd95f45394cc1dfc7639b2552da2433d0af79ad96ebe8b99f97a66b0f7bc0fd7920efcd7b71334526fcea3a7e077d104aa9e6100c0f47a31a8d75d04717ace6e05c688295c607de04ede541b8869bc6db83170d82376a2bf5cb701ffa1cae87a7256ca6cd3e9f82efae6d645c47c7a447db2fa16fa2e73f14474a1b1a2149ad7548dbb1e23a24ad733c2bb6a24978b175c57974c78abb70a61a57f825f4d59aacac181ec2d4796a82ab43a33d192b1edba50f3365d6d7996f229133de26a1defd7f48357e16c8946d31933ec9d98f9bedd2cdf81c7af27c322119271a7f0cd3b1aa874bbf5cd3627eeaebd334f4edbc057537cc33a30120e34ce12e6d51666468f4eb5c8d81268d40d6bbb6cac7b66f069ab23e14f1725ebc60c877ac9897386b88f8630ded78988c873ceac0082b8cd53643172b1e9997ef18ec18ee98d831b9636ac7f48e991db33be6760c681b760c70c740ec18c81d03b563a0770ccc8e81dd3170e49b711ae83e452405892210de65e6a47d14fcd84e335951954a3ac5d58e5e3c22044b8d524ad8adef08b1402e74555b45a7e324aa227938fd472ba415d24a704e423cd0d81f71af1c44891601dd8ec9527207a40e96ca0148452be9b8b586564a6b899a561aace357f9b7219406cb4f1401e99c12b78a08e3c0ca089952e2832c85d6c0f153f532074ad01c4651fe0f459ef528ad5ebca8e6da7774951f161a98a899555b4a56391523051a4676ac08efc750af4f38f2c68a24429c92890d7edcb13fc2e9d8f9f974c3ef384c55aa0b99257fce927f9de5bba4336d57cd658a4932df54f2b7719fd12d402a15ddc44b2ec4b6705abb75c90da7b0a4250af22cad38173aad8474e910b74eac98e89452098aa08d5ae589fcd03abe9e45e724f98b9656ea151f9d3214fe7414b8832c8575940cb404a379120339e89580e08e9b84c081a2edca5170a56da663c0a6c35cd8555a819be002d4551d8e72153442d715e77ca58456cb64177452e4a97d55d139ee6cdc135c20261111a448504085e9b04d2610a0a5caa25930195349b7620a3028e5ba446df35c13390a6128fde20a40664358996983c4445b7212362e11b94e0425aa6c3e256ca62585a3bc2504349a3f33aad85410822b95e808c755369a9398a01cdca69a04c850adb2ee0294483cd16402080edd2d4bee1c150fc212868b249992228506f93185914027d40a15e86cb60870a193d0f4569a96523997e86aabacbee589d666dfa355d930daa92ca5d0221f16c6d9b444274c521385d04979d080ab24e8a413092a80a4bee109163323655c8e198156a525e736ebc9adcd61cc31e7081982fa49c4b5595474d6d995023a4099da5e0c207428f48a26b8e57c4513805bc872703990b9e43945395a91a0a87446402e73fc23c6da4d0802387f665bced35974c6f12cba71c92e60dc9680c6a57a82964b9b696bbb85b212b822082d6d5e0ae7e0d6b2e88434892407b3321760444a6a018ee7b3dce9ec04ae90afce4427b4c80856242015af441535886789092236e1b8075bbc4b54b9d482315b91e352a5255ab9b17490b214ad93ab2da9e4e4022d81b2ef96a551d9e420cc55b55cced0a2e109811b97f541c8a50fad71b9d2809579292ccfe9671d87e7ae3432d70fc1816617a22ea476eb618a825cb541635aa273b87910543e26b9da22dd4997e88216066e790a87d9994689ac0628a1d36100a9d361679106065a6a9036e12a81b97f08ab727313ca655c89d6dd0610b5249ed1b8b3e930da5cf5d0a1496d4188cd72dc88add670b1791320bb01d5760aa5ca97d09499261b039ccb75566e1d09516f2e36d72aeb529545a7b20fa813e5f852b9660ae148f12b3f2194a62191f492cee644470d990de256d08441956c2014641d85ddc287cbad7c2ae972cc4b6bdcb32c515c98b4279cce74d0406e60da9a0c049d45078eb9ab81357922511a720e231739b78430ea5933d15cba754f5a9e434f82b166850a676cf294e4ca26730ae18cc83c017271a41c4ec740cb34df0829adbe9d0b845240e33ca109d8da8f525b1c2b677355928e67eaca42aee6424893d8a3b629e8047798ab0122b7cfdc090ab3e938888c06dc653d418a9c256875ce366136c721c8d4b504e47100accce9020e9e07ac95268719b79083970b93f5e1c6e5b0e246a72a2a509954dd8494b8213895795a2db3c2e8b878e64d3032377603b90983c8b39e9289083ae1b25ee05c0a74a4129b2ccc81a7ba4f3d3c8d38689d31cf947480390e906ffd5268b5994a432ea7cedad4d3a84327b7a3e3268f30c05db6026c7ea16cbde12804888c845ae504036df29cc325a41c88b4578e02accab3248d0d893818aa32b444eb40669188f99525cde2db50c0f51678426d7c34e8ac64ee0d6073d6d2e0957c81cee636874e5c19a2e1cfcd2af3c449334cee0d5c891c3b42886c6ce0900a303a906949dd27250b5a6d78960e78521d6d6c3f579e820a4a92c75a934a7f9c1ff361e75220a175989b070ac95751853026d75870901b21729b2743d0ee76da12c26efd0ab54e9d9e6e003936519bcd884aa690408789203ae4c98602a8c2a725f014d102e8b670cb92c3761b88a99696cae69602fa9af14aa4ce84cec136d501e4262540a4ca4b97b8b81002287f6f382ac9530608cb4160dcba7e673f87f3fa553d3df8d4e913f6db0f052de995901e3d4e7e8e97747a58aae8dd82aec4f141ae8acfc7f15d4670135f2ad246d79e5b7a1440aaac0aa4200b1763f0f75544286e0e7da4fbf95719d20d9a7fce5149eb8cc37f8da3720a24c0fa22f0258ef3127cf3f439376d404aa7ff356e865e432ce88f578be73f99585f3ff23be6428f7ffbfcb844768a8f1febe35bdc2cd3e644a2ddfc590ede7c6766c5656ae94466f26d3c7afb471b747a3e79549af050391b5cdda094a0e481ab033718ea431da0ae813b7408ba56d258af65b0e1d804690f12404b68407aa2d68587409f8e8afc4cbe63c57098c3f41003e343f1875f76d6079d157dfe9d77207aeaf9f831beaf14fdb086528adfeda32609f4f2c7efd8ebbfffd7ab1d43560f5398776ca40f910d5b06f616deedd838b5c3d42e4f6c8f3c3f4e76836f2aff10267f17635e951a995fd8720a2cbe48ee982e95cb20fa9e994e9e7332a508a1d460be6fd835e8999f423c9604fd133d97cee4ac85cd61d9b1769959d71e263fb561666d5f7797e6fa7d269da22fb4273f45f178e99c66c331527d8c8fa76ce8e3af0d7bc7a4606dff3074977ef1d3139b1fdbf5ab3985e5371fbff91fe14f5260');
INSERT INTO documents VALUES(2,'zlib',9803,X'785ead3adb8edc3696eff90a422f034caa14de2fbd4f5ec7d90c369741c679581886c092a82ea55592565275bbc7f0bf2f0ec5c3aaead8d90c761f6cb00e0fcffd46aa3f7e4548b1d4c770f2d56398976e1c8a3b52b092163bd89acff01bb008297a7f1eea23ec2b27996d84db6badcc5ef2f6b07707aaf68db7c66ae9454d7d24104f1d420f87eae94cfcba8661edc681b4bd5f8e845db0869090f6eb38d747dc78e8860636d6d9774337dc237c3caff5788a67c607044ef3f818063fd4117e0a7e39cfa1c1dd65f5f31a22354eb9de33b6e7ec2d75778cde49515ac199a25f537a4737ed0929da6ee896e317ce28516ae68c96b767ea7158c387158eb4a6169cfb8632e119f375e36ddd34c1f943a0a176aa3d8470a80fb5084ccb56687d60350fba31ad76879a0714e3382e91de210cf5715f4f67dca8c7d3c96f069a9ed7e338908872f2f3c3f24d13eab109f337d17455b46a393d93fdbe09d37a249cecf72ffdb1df8fe7753aaf2462efa393f6acfc6d1907b2df87c7ae09431d3eb38b02850fdd5a01dbe28ed0045bfdfd52dc917745134e63b1234512ac78ff15219f00a980df97409bc3342edd3acecfa0d81cead04deb822cbad334821faba6bb0f9b5da4b7ce325d3b4a7923a9e2ae6e0de5aca5c63380354c864684f6507b631a21654d8df7ca1c1a665bce8b2cc8d1cfcd939faf84f1751dfa30fb759c81d5b5f18fdd048ab124187829feced4a6deafed389f2ed44640287ee886f307a24b664b29f76dbd7f544e21d9cd9180264ac64a7311eee918420f0412b17a3c4d7d5841d8753e8774beedfad08ff5035090252f594eb27659a650031ce2bf74658ef3dffc0700d392d1925f01fbeef0197837fce639c045c94a8de8273f3f9ca7c5b7204f214a5acabcd5ef9bf5790a207b414b7d617c9a4e7e8d358595e2021ec2fa34ce0f512851ea32ab309c4f538c0a5eca0beb715af7a11b963358ba10a5bc509aba09605c802510b8d4dd468595cc5c81c37a9ed6718c362eacbc39f29c18b3925d918f9900605e3251d2afafc2637d9ebae17e1f3eac6180c21a89ca9281f6d9a56dbf25c71f7af487573ffd07e0148fbe3f47ebbe2e7f7dfbddde42321d423bcea19acfc3dac57a08a110891352fcf89f3f543ffdfa63f5f6fb5fdebcfaf61fb744d8ff7afce71ffffe7f39fef6e75f5e7fffb79fbefdf5f5db9f7fa9befbf997d76faa6ffff68f57fffec39beaf5abd7dfbff9f30265834d7ead8f31903e6fb28cd806bf9ee73fc04c26f2f5da3d7ae84960d8fbd06707fac69f9e007808ab5f082ddd0efe53ff469e42777f5c49136aff4ce825480e9d5f22c7d6f70be663338fd378863a454b2c89f7b36fba30ac55dd77138409948dbc3b8cf3c9f7dd3fb354bd7f0e730560b2b99b045f1fc9723eec0f31d5d3c1583631d4fae0e7e1d2fda679acc3b28c336c62c982d01ce76a59fdda2d6b572f2f647ff47dd74431aa6ea8fa718464ba46588f73f0cd72457269265f75c310e6eae0eb87b075a7611cc225ea4f63136026482e1c7c0c5cec0b7bfe81718b72b7fed4f531f39a302c01c113b4ae39faecdd5ff7efe11f6ef97e3afa43008b17436c391b3cb6bde28ef08477ec9a260005c62d82923232fd7e78ac8e2f40f0bb6a3aa8340229b52d9051ecea7735cde36fa106d32d573c1fc7da1fcebd8fad8d2b9d0e840f539863f3c01838ad538502236ced425385d321344d37c4b271ed0a8fbdbc829909760b4eda73dfa3fe939ffd29ac615eaa755c3d38403a6e2992bfda8f49113242761ca0f47de8bb05f44feedb82a8b884c0a64df505f815e2655442c8d44da1ef06608da0c76e5ecfbeaf3eb3d5f8d55f612ee1bfcf309fa061b2d807281a17814f5d3d8f1502d135f7fd78f0fdefc048b4eac3701fdd71719bafebf3e9dcc704013932c3e17c0af3964e8927f4eaf31aaad807c137ed2472a76d275bcda1eeb69d982b6967429f7cfee01c9a738cb1cf6f8fd3da9dba7f8638b9c47256b5e7e55213f27e35aec70deb9af9651b0ac417648f65a61beeabd9c749849694529118c0d5a239f7002fea7158563facc87c0971ae665c60b6cd2159a97821886ffc04710be62c1ebaab92f2e9e5d1ca4f53df850b46f609d0eea228c925d3b8408700cce0efc38c82bd2c5b09fce4e7d379aaa6b1ef6ac8de8253b2ac61ca83697d6e7c753ffbe9587530989dc200753586c68d3ab5af8f2116ddc87c6cdb4c6293b15a423d0e3187313993f49f0355be5dc35c6df25ded6fa21ce6e01fe2b16c899436c90cf06bd9aae5367aee97b5e9bbc39ef1fd6904ef2d7b71354526fcea327e077d104aa9e6100c0dad518de675d0ad0b5653e65c688295c607da04ede541b8869ac6db83170d67dea85cead7f1210c18ae87e73564d3a2cfe7e0fb4b1b99b6d131e9d10d6b189ae8f98f450b69032324a8b50d693b525c86a46d8e27452e9a80175b57bcf3c064741f4e50e40abf86a1dab29514e363987b0f5d70f368342821c553b70e6181d4fa32f72c1378e35d92eafdff8b58d3ef4219f22de6d28bacfd94ad97aec7a73080ef9311c13cd1fc5398dbaa1ecfc37a498ce579a88ff338744b0eeb7e5c16022300e2cce13e6d416e20347a76a9a600b34600f35d9ae553373423cc591f8b78432fee08a73b522c6b9c3644fcb105773c0cd6e334ea40002b4c559ea28b0d0fec4b7784ed08df11b1237247d48ee81d313b6277c4ed08836db6238cef08133bc2e48e30b5234cef08333bc2ec8e3007ce99e6116e544052802882b3f7c81cb48f82b7ddbc801555a9a45354ede0dd234278a9b99492edb6c784582257b8ac6da2c3711055813c14fe831587158795a014847884c13fe25e3888925bceb8db11594aea18a8c34be518930a56d2516b0dac94d6926b5869661dbdc89fc750182d5f28c2a4734a5c2b228c635646c89c529fc952684d8d79a91e728014c5308af27f2c70da83bcbabbab96daf770991f571899a09d553929ab7839dc412c9f63944228840f53a8b7771c7a65451e057bdeba04ffb4237f86534cf62b7eed3857a932204b79cb527e99e5fba4336c57cd798e49b25cd5f277719fc03d406845b984fb0415d45108375a526e8573625b6a4ac1b771a915b82f2eafa154f20daa8c15e99871dab1b8149c69991a71e4c9151710db71e9a84d27946510b0b0d4d4d104d5526a5c1a2a36925c530e211597d21a5c32239302cab0d4cd134b8b0495e614a9988b3ec231845a9d095a968cc3b5b50e7195918998718ea11914a3691edb581aea1cee39c993605a33855a0a8b4b438dc025730e71157789bdb15227235bc7d037461ae36e780a4815303a93866ef20aaaac48678dd450696069b98122034b631ddf34169473bd7117cc0864a98d425c652563d72c3533e815eb94dee870ab2c94b3b8645aa11d0437494d6d184db85ab1c49e6b6b655a1a6ee92609d756f15b9ec25c7cc8b3725a237b2d4c5e2a873c0db709552b89426b2630180dd77969a54b97b1cd9b963b970e1b99bd6994107842189a9c65254504e50c942a806a110b222c0d35d924ca485c4a73ab257739f4b9cdb12472e21981fa186b4c5a6a2572d0509323855134ac960a534e2b67cd0d4bc651092d194f2632d79ed04907cbac4054255c822a67126d23158a640447bb6a69f54d626a2991a3a106eb8f66262701987b5b1a4d4d12493be770299c458b48ce9320da309da14cf36b9e065222eda99ce09ce590d04aa470d7ee52d198c866d0d420825059526514428de33789a935cb45c53114d2189753cc66f646647d84ce11a01866ae6139b73455b98251676fc2c7528a4962d0534a6bac334a3989479d938860a44a6cb4133a21288ba70ca3986e9a1baaae191a29d0f99a499d785b2e60a8891585ca4c873364a93984445c1aa3d1965a65576b81c5476be16e3a899606ada215c313ca6aec03da4a83c6541ccb8c321613d4b01c5e5acb1c7fcea2ee86d9db885546a05d95c5e6c995bd641535d86c347526211826b2650dcd91c434a68ee61289692a6f4d6b0506997339da2dcbc16b69d6d82a8c6dab2d3ac13893cc2d18cfaed1facab0b72dda180ab362143c9784abb2651802b5e61631194bed871beed01b964a9a2436594a27a16b5c31d4cee5c072575dd7a8b4b44e8944461b81cddad28b9c3467a215984b5ab35cb61938fd9aa55078564b9e82941bcd301c9d721826dae59eafa5cc6d5b29cc444ba545a844850573ccdc961e86f3823534d94d30a7501f2324564deb24dd96423396f8086975ea0482728782689b5dedb87637f1aa99c5066895411b1aabb2bd05cb45c40aacef3a0f6646b14b5d13290204b3066b973156bd70a6cc0554abdc83a4469686e5eaad787602cfadd0588d222927507ca52cc6be8684b8e128b05b69cb928c5c4b8766d1526074180a0f4371695dae9f566b74a01536599edb4b3db40cd2e59aa7a4572d065bb1722cd75561319095cda3a9d6368bca052268c7d19c9a732c6a46507bd3471ce768234d73e5102a6bcc285a4b33e152bdd3cedac4dd088d038911388f68e528eec3e874cd11e6b474405997029b6b41f3523974b6a54e25968633ace586e7b9dd708aaa59e15209114c38fe82a7483c05bd848a11067ba8d12e8f339a67cb4255494bc330ac8cb5b914099e8662ae991037154f73996dc04d76a15578c2089d6f0086c1251d1819c5f8a69180dc8c2bae85c2194c4b2312591de7dc6b9652a0645a9a540d207db3dfa4c421d92a83c196310d4513724b2f02a1652c572fd2525386f65106d1b470174fe9d426b89102b5355c21aee5148d0d534ac2b52e8f82961b7ba3a31322ddea0437d2eab8f5feeaf1e7b47d5eff18378a3a7dcb7ef7312ed3dd7a3afa25ded5e17da982e70bb819c797b92abe23c7e719e1e0aa9937faeed4ad700757dc68c5a4005b1553f00f554428ae0ec56bfa1719c2459afe9ea334c64867fe358e78e88b1c9735f8e6f9f7dc94868c82029a36fe8c7e9a1acea5e09f2e16c73f9ed81e41f041738547c03dbe31819de21bc8f6061737cbb43983688f61864fc9b0c9af3e3893e23c77004426dfc4a3377fbf01c797a3e74a03a2a694b5ce68138c65b63d30cd78eba9a5cd410b69eda1164c89502b6e8ca53c682d691b1adef256f3dab640ad0f8f013e2215f860be23c57858c2fc1823e363f1e5179e28d867de5deee0a9ee5f3f17bf343ef919d85e08fcd1cb12207efa145f6c8a61dca232a5c2841f4a41b5573f7e4bdefcfdbf5eef0827f53887654726f8b8d9907524efd8fb1d99e66e9cbbf599ec39c5e7ce7ef44de51fc3ecef63fae85239e257b21e03896f9c3ba24b2a1104df48d3c953487999820db28cf8a12197fc217e0ef15812f42ff000bb80df57b2847547ba75217d7798fddc85857443dd9f9bcb379f740abefa1eb73f742968e99c21631ba93ec5e758320ef157c6de112149373c8efd7958fdfc4c96a76efb120f11fed5a7affe07d5867488');
INSERT INTO documents VALUES(4,'zlib',4794,X'785ea518db8eddb6f1dd5f41e8256db352743bb72df2e0ae9d26a81d078efd50188630224747f44a244b527b49e07f2f8612a5e3c44e0b648135acb9df67b8bf3e612c71bcc7119a3bb44e6a955cb3a4c8f2e48a5076a26fa2622c196052bc277cb5efaab28653da09d1a63562979e4a51a787f65489baa84fbb42040181abc58198b89998d6232b368cc205917a6d791f11b7520942780b5249758e703d79aec7c0a3f518a1c6ea3b54a078408c086eb2b8aa771eacc720aecccb7d5a146959bcc94fd7457dbdabb27277cc4fa7aff3fc3a9f5d662ce9a492aeff2ccfee3acfb3b238d4a7fa531eae95c7074f2cdd81576509222f2a280ae0028e5c083c418b39f2d3ae6b115bdef20a8b7ddd55fb7d5bf012f7e2d0ed4f2d2f319ad16b17e4b5a8789f72334504d7e3087384cca3efb5628164047bebbe11c8b540fb4d885d13c29a994796a6028def59c9d214bc47e5a5566c04dfb3341d25b73a6dc1f39eed8a40228445e7526780633ac851fab47df4e85895c71f96a67af266f22c6849b51ed322fbe0b462698a7752a0e2f83b5c74021fa46fc8d4e49a150bccc3d925d7ec5d2270d4c9154b166792f74f18fb4844097d6f1569d16827bdb68f140c8b1ca5f12eaa90a3d194fb46c833ceb1ace1783a167b7ecaf352d4f9ae3cf1ee909745971fa02098286a1415762d87c3415475cdf303c0eed08ae2d89565b21ad28315f7602f8c01ce71400b5e5b527599b05e1a722cfa49990ddfab343380efb41d37699a089217524d0f6c9f15c7acaed38ea777bbd32e8a9d934f64555614d96133eebe471c48c0228cebd10ce8c9586f275cf83b39e0a0f92d49a8b3322bd6ceec9c33c8094e3d939db2b5373ec00381f3acc8b3f20238c8f63370a93e4049f02a2bb27d241fc1de4ec64147f624559667f58a1a52e11f0d92ed499eed37c5a3a162257091551b58a1bfd7f636185565fb6c75414da309555166f5a65a1b9fa2546ea2482755566f928c34042b2b8a44043a2e672945561c2ec0e827e3b50e314e8ef5272c8f8be2222b2ec4873e2070991555967f7d511efed148754ef1c1a3a2091c84d65941deaf29ed86b939fe30a32f9efef84fa249ee609842746fb2b76fbe4b8fd44c2d76da626327e56518a2540a413863c9cb7fbd687e7cfbb279f3fdebe74f9ffdfca990e27fb2bf7af9d39f617ff3eaf5cdf73ffcf8ecedcd9b57af9bef5ebdbe79de3cfbe1e7a7ff78f1bcb9797af3fdf3ffdfa0356086c6197e39642b6187e027fb07944b88807b7907343729b0671cd6048280f19e802d7a702ccf4e57f4cfeeefec1ee5b9f74c208747966f45d24a70416307838bfd28ac367aa2399567f9023b5b1012956ff8200d95098d8d15abb41d6190bfac560df088b621309bd3cd1078cfdcd4a66d68f585318ccd586a038255dbc6345673744e5b42c69145a5a96de33c78e9bce4ee37b6dfc1204530a391aa19b4a666ba24f0bd4510ee42a413061aa914daa6057e8bf346535a61b404e62dd4842dd4842dd4842d945c5feca13591a3164897c6d2220a4295c72592960f45798ca23b18e510da54a072ab4643bbd18604bffb5bfa9e7e230a06d3438b949e4485fd34c3c35e4dae59b9d0f55208240945798ca0c5f37af9bebd6bfadf80e8bb1192c6521525751d89d91517df8db1fa03728ab3bbd079a739b4d300610f96bbfdc2800f066dd834b160466f9a6870847989a2c1b14521a40a33e6326f108f8586ae32c22625eba66188fe1bb030a247eb1aaf3d5002ea5379cca3f80b7ce8205c09d6c411c930e0201df9bfa46faeb864ab97d99be60bf00bc2ed168b10230d0e5291ea08ba93d64f30349f4109f07041e9f03f139d323130abd9e160da0c0e575413815bdace836e61f80c220a6e0654e790922d75c0f9344e43e828b26555aaa611eddc7f8b5e5aee93c7262c4eca4f67aa753577e6d858e472c65c36978979f93ca34531853afb3c5a1b2f47f90b865327ccbfa69bdc3644567ca37d3f535d2adfd03451be607b984b529d1b0be174c9b33ccfab45013d5ac434103ce15a390fca47e50ec3f15e9455ec388b4b9492df1802020cd52e8533b9951733e8e31a72629541d31271a31d6d0c224538a38d7abf30c6eec18e93698c1e24a7064dca9c398f663d54f924a0395b307d23e9501b51d19c0d99ffc45a0ebcc730848372dd75db81b054ed62227db97958cd6762eabc18649b16653a6a0a9c4bab8b8b6fa16fb65319f76db5dbed448b871cbbc34eec4b8efbee84c77d5e9c4e28f0581f0073817ba8dbea24f28380630b95280b38ecd649ebf52daa58296d98de0b2686db220c9b1f663ef3163fa4f2a84448e7af4947154be71eb9351f54572cd90e9af9e666c93ab3882eac99703b5eb1e48c238d98043caa66ee1396e83bb403d0c29a83bd657e794c8ea828928b49a42c3863d0760dd793f25b09b847c57bab95746b0207ed1ca3e517692c9e17145541848638b9c6206d59246b8aaac80fe58531e3fcd059ece0cbabe2ddaf09fd971ae48a25a607178ac368e71ba9a40fc71bc5bd090d7acd0e79be2f739ad01111566b72b9543f6e4fae0ee43057fba27855d149eb7c732f95d0f7d10d3e8023ab625a1a1806cd23962c585778b9df95c7fd719fc73da9cdf67cfaf4fd7add697b0f760de188cec1996c4adea1eab4e5c8c84e069e05850d3753c68db92ecac37b86d6b26fbf6579c69e6107d3e06f7e7afb94c848db35e3a0be5af8c0231b91027dcd1ef5c4bc952898d71b7657ed8f87fc54942cf891b1e7d66acbe8c66045c9fe72034ae9df49fb6bb47c4dd5fcb9a43a2e4b4b2bc1d19b3508a7f51fd52d1421552b764bd89a2ea567544c56bce628564f5f3e63cf7ffaf7cd152b19d716dd15337481050fdf15efaf98b1525be91f595ae6d1e4418368e00eed12f15db6af29d0be4716febc72c576d9ee184174c82d9c73248927181c0a904917c89633f32bc74084338f8533ef8addf792f74475df2f1283cf2c749a0b83e2c9c727ff05625d445d');
CREATE TABLE extracts ( /* What plugins made of files of evidence when a receipt was submitted with them */
	receipt INTEGER NOT NULL /* The receipt, by its number */, 
	digest VARCHAR NOT NULL /* SHA-256 of the file, as the receipt lists it */, 
	kind VARCHAR NOT NULL /* What it is and its version, such as time-profile-1 */, 
	codec VARCHAR NOT NULL /* How body is packed: zlib */, 
	body BLOB NOT NULL /* The extract, packed */, 
	CONSTRAINT extracts_pkey PRIMARY KEY (receipt, digest, kind), 
	CONSTRAINT extracts_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
)
 WITHOUT ROWID

;
CREATE TABLE subjects ( /* Which receipts a verdict speaks of */
	verdict INTEGER NOT NULL /* The verdict */, 
	position SMALLINT NOT NULL /* 0, 1, 2 in the verdict's order */, 
	side VARCHAR NOT NULL /* receipt, or a and b in a comparison */, 
	receipt INTEGER NOT NULL /* The receipt, by its number */, 
	CONSTRAINT subjects_pkey PRIMARY KEY (verdict, position), 
	CONSTRAINT subjects_verdict_fkey FOREIGN KEY(verdict) REFERENCES verdicts (seq) ON DELETE CASCADE, 
	CONSTRAINT subjects_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
)
 WITHOUT ROWID

;
INSERT INTO subjects VALUES(1,0,'receipt',1);
INSERT INTO subjects VALUES(2,0,'receipt',2);
INSERT INTO subjects VALUES(4,0,'receipt',4);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO alembic_version VALUES('0002');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('receipts',4);
INSERT INTO sqlite_sequence VALUES('verdicts',4);
INSERT INTO sqlite_sequence VALUES('supersessions',1);
CREATE INDEX claim_supersessions_claim ON claim_supersessions (claim);
CREATE INDEX claim_verdicts_claim ON claim_verdicts (claim);
CREATE INDEX decisions_receipt ON decisions (receipt);
CREATE INDEX quotes_document ON quotes (document);
CREATE INDEX quotes_receipt ON quotes (receipt);
CREATE INDEX incidents_line ON incidents (line);
CREATE INDEX incidents_incident ON incidents (incident);
CREATE INDEX envelopes_receipt ON envelopes (receipt);
CREATE INDEX tokens_prefix ON tokens (prefix);
CREATE INDEX configurations_lane ON configurations (lane, catalogue, seq);
CREATE INDEX configurations_line ON configurations (line, seq);
CREATE INDEX configurations_catalogue ON configurations (catalogue);
CREATE INDEX axes_leave_one_out ON axes (leave_one_out, configuration);
CREATE INDEX receipts_actor ON receipts (actor);
CREATE INDEX receipts_listed ON receipts (started, seq, lane, kind, outcome, provenance, status, path_answer, tainted, accelerator, chips, sequence_length, micro_batch, global_batch, depth, rate_source, tokens_per_second, step_seconds, mfu, peak_bytes);
CREATE INDEX receipts_context ON receipts (context, started, seq);
CREATE INDEX receipts_model ON receipts (model, started, seq);
CREATE INDEX receipts_shape ON receipts (lane, kind, outcome, geometry, layout, chips, sequence_length, micro_batch, depth, provenance, tainted, accelerator, global_batch, path_answer, started, tokens_per_second, step_seconds, mfu, peak_bytes, rate_source, id);
CREATE INDEX receipts_label ON receipts (label);
CREATE INDEX receipts_supersedes ON receipts (supersedes);
CREATE INDEX receipts_host ON receipts (host, started, seq);
CREATE INDEX receipts_witness_for ON receipts (witness_for);
CREATE INDEX receipts_revision ON receipts (revision, started, seq);
CREATE INDEX supersessions_successor ON supersessions (successor);
CREATE INDEX supersessions_receipt ON supersessions (receipt);
CREATE INDEX pins_name ON pins (name);
CREATE INDEX claim_subjects_receipt ON claim_subjects (receipt);
CREATE INDEX placements_configuration ON placements (configuration, at, receipt);
CREATE INDEX signatures_signature ON signatures (signature, receipt, outcome);
CREATE INDEX signatures_base ON signatures (base, outcome, micro_batch, sequence_length);
CREATE INDEX subjects_receipt ON subjects (receipt);
CREATE TRIGGER claims_no_update BEFORE UPDATE ON claims BEGIN SELECT RAISE(ABORT, 'claims is append-only: update refused'); END;
CREATE TRIGGER claims_no_delete BEFORE DELETE ON claims BEGIN SELECT RAISE(ABORT, 'claims is append-only: delete refused'); END;
CREATE TRIGGER claims_no_replace BEFORE INSERT ON claims WHEN EXISTS (SELECT 1 FROM claims WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'claims is append-only: replace refused'); END;
CREATE TRIGGER claim_supersessions_no_update BEFORE UPDATE ON claim_supersessions BEGIN SELECT RAISE(ABORT, 'claim_supersessions is append-only: update refused'); END;
CREATE TRIGGER claim_supersessions_no_delete BEFORE DELETE ON claim_supersessions BEGIN SELECT RAISE(ABORT, 'claim_supersessions is append-only: delete refused'); END;
CREATE TRIGGER claim_supersessions_no_replace BEFORE INSERT ON claim_supersessions WHEN EXISTS (SELECT 1 FROM claim_supersessions WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'claim_supersessions is append-only: replace refused'); END;
CREATE TRIGGER claim_verdicts_no_update BEFORE UPDATE ON claim_verdicts BEGIN SELECT RAISE(ABORT, 'claim_verdicts is append-only: update refused'); END;
CREATE TRIGGER claim_verdicts_no_delete BEFORE DELETE ON claim_verdicts WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN claim_subjects ON claim_subjects.receipt = purges.receipt WHERE claim_subjects.verdict = OLD.seq)) BEGIN SELECT RAISE(ABORT, 'claim_verdicts is append-only: delete refused'); END;
CREATE TRIGGER claim_verdicts_no_replace BEFORE INSERT ON claim_verdicts WHEN EXISTS (SELECT 1 FROM claim_verdicts WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'claim_verdicts is append-only: replace refused'); END;
CREATE TRIGGER claim_subjects_no_update BEFORE UPDATE ON claim_subjects BEGIN SELECT RAISE(ABORT, 'claim_subjects is append-only: update refused'); END;
CREATE TRIGGER claim_subjects_no_delete BEFORE DELETE ON claim_subjects WHEN NOT (NOT EXISTS (SELECT 1 FROM claim_verdicts WHERE claim_verdicts.seq = OLD.verdict)) BEGIN SELECT RAISE(ABORT, 'claim_subjects is append-only: delete refused'); END;
CREATE TRIGGER claim_subjects_no_replace BEFORE INSERT ON claim_subjects WHEN EXISTS (SELECT 1 FROM claim_subjects WHERE verdict = NEW.verdict AND position = NEW.position) BEGIN SELECT RAISE(ABORT, 'claim_subjects is append-only: replace refused'); END;
CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions is append-only: update refused'); END;
CREATE TRIGGER decisions_no_delete BEFORE DELETE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions is append-only: delete refused'); END;
CREATE TRIGGER decisions_no_replace BEFORE INSERT ON decisions WHEN EXISTS (SELECT 1 FROM decisions WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'decisions is append-only: replace refused'); END;
CREATE TRIGGER quotes_no_update BEFORE UPDATE ON quotes BEGIN SELECT RAISE(ABORT, 'quotes is append-only: update refused'); END;
CREATE TRIGGER quotes_no_delete BEFORE DELETE ON quotes BEGIN SELECT RAISE(ABORT, 'quotes is append-only: delete refused'); END;
CREATE TRIGGER quotes_no_replace BEFORE INSERT ON quotes WHEN EXISTS (SELECT 1 FROM quotes WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'quotes is append-only: replace refused'); END;
CREATE TRIGGER incidents_no_update BEFORE UPDATE ON incidents BEGIN SELECT RAISE(ABORT, 'incidents is append-only: update refused'); END;
CREATE TRIGGER incidents_no_delete BEFORE DELETE ON incidents BEGIN SELECT RAISE(ABORT, 'incidents is append-only: delete refused'); END;
CREATE TRIGGER incidents_no_replace BEFORE INSERT ON incidents WHEN EXISTS (SELECT 1 FROM incidents WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'incidents is append-only: replace refused'); END;
CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals BEGIN SELECT RAISE(ABORT, 'seals is append-only: update refused'); END;
CREATE TRIGGER seals_no_delete BEFORE DELETE ON seals BEGIN SELECT RAISE(ABORT, 'seals is append-only: delete refused'); END;
CREATE TRIGGER seals_no_replace BEFORE INSERT ON seals WHEN EXISTS (SELECT 1 FROM seals WHERE seq = NEW.seq OR (store = NEW.store AND what = NEW.what AND first = NEW.first AND root = NEW.root)) BEGIN SELECT RAISE(ABORT, 'seals is append-only: replace refused'); END;
CREATE TRIGGER erased_no_update BEFORE UPDATE ON erased BEGIN SELECT RAISE(ABORT, 'erased is append-only: update refused'); END;
CREATE TRIGGER erased_no_delete BEFORE DELETE ON erased BEGIN SELECT RAISE(ABORT, 'erased is append-only: delete refused'); END;
CREATE TRIGGER erased_no_replace BEFORE INSERT ON erased WHEN EXISTS (SELECT 1 FROM erased WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'erased is append-only: replace refused'); END;
CREATE TRIGGER trusted_keys_no_update BEFORE UPDATE ON trusted_keys BEGIN SELECT RAISE(ABORT, 'trusted_keys is append-only: update refused'); END;
CREATE TRIGGER trusted_keys_no_delete BEFORE DELETE ON trusted_keys BEGIN SELECT RAISE(ABORT, 'trusted_keys is append-only: delete refused'); END;
CREATE TRIGGER trusted_keys_no_replace BEFORE INSERT ON trusted_keys WHEN EXISTS (SELECT 1 FROM trusted_keys WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'trusted_keys is append-only: replace refused'); END;
CREATE TRIGGER envelopes_no_update BEFORE UPDATE ON envelopes BEGIN SELECT RAISE(ABORT, 'envelopes is append-only: update refused'); END;
CREATE TRIGGER envelopes_no_delete BEFORE DELETE ON envelopes BEGIN SELECT RAISE(ABORT, 'envelopes is append-only: delete refused'); END;
CREATE TRIGGER envelopes_no_replace BEFORE INSERT ON envelopes WHEN EXISTS (SELECT 1 FROM envelopes WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'envelopes is append-only: replace refused'); END;
CREATE TRIGGER tokens_no_update BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'tokens is append-only: update refused'); END;
CREATE TRIGGER tokens_no_delete BEFORE DELETE ON tokens BEGIN SELECT RAISE(ABORT, 'tokens is append-only: delete refused'); END;
CREATE TRIGGER tokens_no_replace BEFORE INSERT ON tokens WHEN EXISTS (SELECT 1 FROM tokens WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'tokens is append-only: replace refused'); END;
CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts is append-only: update refused'); END;
CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts WHEN NOT (EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.id)) BEGIN SELECT RAISE(ABORT, 'receipts is append-only: delete refused'); END;
CREATE TRIGGER receipts_no_replace BEFORE INSERT ON receipts WHEN EXISTS (SELECT 1 FROM receipts WHERE seq = NEW.seq OR id = NEW.id OR (launch = NEW.launch AND generation = NEW.generation)) OR EXISTS (SELECT 1 FROM purges WHERE purges.receipt = NEW.id) BEGIN SELECT RAISE(ABORT, 'receipts is append-only: replace refused'); END;
CREATE TRIGGER documents_no_update BEFORE UPDATE ON documents BEGIN SELECT RAISE(ABORT, 'documents is append-only: update refused'); END;
CREATE TRIGGER documents_no_delete BEFORE DELETE ON documents WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt)) BEGIN SELECT RAISE(ABORT, 'documents is append-only: delete refused'); END;
CREATE TRIGGER documents_no_replace BEFORE INSERT ON documents WHEN EXISTS (SELECT 1 FROM documents WHERE receipt = NEW.receipt) BEGIN SELECT RAISE(ABORT, 'documents is append-only: replace refused'); END;
CREATE TRIGGER extracts_no_update BEFORE UPDATE ON extracts BEGIN SELECT RAISE(ABORT, 'extracts is append-only: update refused'); END;
CREATE TRIGGER extracts_no_delete BEFORE DELETE ON extracts WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt)) BEGIN SELECT RAISE(ABORT, 'extracts is append-only: delete refused'); END;
CREATE TRIGGER extracts_no_replace BEFORE INSERT ON extracts WHEN EXISTS (SELECT 1 FROM extracts WHERE receipt = NEW.receipt AND digest = NEW.digest AND kind = NEW.kind) BEGIN SELECT RAISE(ABORT, 'extracts is append-only: replace refused'); END;
CREATE TRIGGER verdicts_no_update BEFORE UPDATE ON verdicts BEGIN SELECT RAISE(ABORT, 'verdicts is append-only: update refused'); END;
CREATE TRIGGER verdicts_no_delete BEFORE DELETE ON verdicts WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt JOIN subjects ON subjects.receipt = receipts.seq WHERE subjects.verdict = OLD.seq)) BEGIN SELECT RAISE(ABORT, 'verdicts is append-only: delete refused'); END;
CREATE TRIGGER verdicts_no_replace BEFORE INSERT ON verdicts WHEN EXISTS (SELECT 1 FROM verdicts WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'verdicts is append-only: replace refused'); END;
CREATE TRIGGER subjects_no_update BEFORE UPDATE ON subjects BEGIN SELECT RAISE(ABORT, 'subjects is append-only: update refused'); END;
CREATE TRIGGER subjects_no_delete BEFORE DELETE ON subjects WHEN NOT (NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.seq = OLD.verdict)) BEGIN SELECT RAISE(ABORT, 'subjects is append-only: delete refused'); END;
CREATE TRIGGER subjects_no_replace BEFORE INSERT ON subjects WHEN EXISTS (SELECT 1 FROM subjects WHERE verdict = NEW.verdict AND position = NEW.position) BEGIN SELECT RAISE(ABORT, 'subjects is append-only: replace refused'); END;
CREATE TRIGGER supersessions_no_update BEFORE UPDATE ON supersessions BEGIN SELECT RAISE(ABORT, 'supersessions is append-only: update refused'); END;
CREATE TRIGGER supersessions_no_delete BEFORE DELETE ON supersessions WHEN NOT (EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.successor)) BEGIN SELECT RAISE(ABORT, 'supersessions is append-only: delete refused'); END;
CREATE TRIGGER supersessions_no_replace BEFORE INSERT ON supersessions WHEN EXISTS (SELECT 1 FROM supersessions WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'supersessions is append-only: replace refused'); END;
CREATE TRIGGER pins_no_update BEFORE UPDATE ON pins BEGIN SELECT RAISE(ABORT, 'pins is append-only: update refused'); END;
CREATE TRIGGER pins_no_delete BEFORE DELETE ON pins BEGIN SELECT RAISE(ABORT, 'pins is append-only: delete refused'); END;
CREATE TRIGGER pins_no_replace BEFORE INSERT ON pins WHEN EXISTS (SELECT 1 FROM pins WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'pins is append-only: replace refused'); END;
CREATE TRIGGER purges_no_update BEFORE UPDATE ON purges BEGIN SELECT RAISE(ABORT, 'purges is append-only: update refused'); END;
CREATE TRIGGER purges_no_delete BEFORE DELETE ON purges BEGIN SELECT RAISE(ABORT, 'purges is append-only: delete refused'); END;
CREATE TRIGGER purges_no_replace BEFORE INSERT ON purges WHEN EXISTS (SELECT 1 FROM purges WHERE receipt = NEW.receipt) BEGIN SELECT RAISE(ABORT, 'purges is append-only: replace refused'); END;
CREATE TRIGGER stores_no_update BEFORE UPDATE ON stores BEGIN SELECT RAISE(ABORT, 'stores is append-only: update refused'); END;
CREATE TRIGGER stores_no_delete BEFORE DELETE ON stores BEGIN SELECT RAISE(ABORT, 'stores is append-only: delete refused'); END;
CREATE TRIGGER stores_no_replace BEFORE INSERT ON stores WHEN EXISTS (SELECT 1 FROM stores) BEGIN SELECT RAISE(ABORT, 'stores is append-only: replace refused'); END;
COMMIT;
