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
)

CREATE TABLE claim_supersessions ( /* Claims that no longer stand */
	seq INTEGER NOT NULL /* Number in the order in which they were said */,
	claim VARCHAR NOT NULL /* Id of the claim that no longer stands */,
	successor VARCHAR /* Id of the claim that replaces it; null where it was withdrawn */,
	reason VARCHAR NOT NULL /* Why */,
	at DATETIME NOT NULL /* When it was said */,
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */,
	CONSTRAINT claim_supersessions_pkey PRIMARY KEY (seq)
)

CREATE INDEX claim_supersessions_claim ON claim_supersessions (claim)

CREATE TABLE claim_verdicts ( /* What was said of claims, and under which rule set; the last one of a claim counts */
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT /* Number in the order in which verdicts were given */,
	claim VARCHAR NOT NULL /* Id of the claim */,
	status VARCHAR NOT NULL /* supported, refuted, unproven, stale */,
	rules VARCHAR NOT NULL /* Digest of the rule set */,
	judge VARCHAR NOT NULL /* Version of the judge */,
	at DATETIME NOT NULL /* When it was judged */,
	codec VARCHAR NOT NULL /* How body is packed: zlib */,
	body BLOB NOT NULL /* The verdict as JSON, packed */
)

CREATE INDEX claim_verdicts_claim ON claim_verdicts (claim)

CREATE TABLE decisions ( /* What was decided on a receipt, shown wherever it is quoted */
	seq INTEGER NOT NULL /* Number in the order in which they were made; the last one of a receipt counts */,
	receipt VARCHAR NOT NULL /* Id of the receipt */,
	decision VARCHAR NOT NULL /* ship, hold, drop */,
	reason VARCHAR NOT NULL /* Why */,
	at DATETIME NOT NULL /* When it was made */,
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */,
	CONSTRAINT decisions_pkey PRIMARY KEY (seq)
)

CREATE INDEX decisions_receipt ON decisions (receipt)

CREATE TABLE quotes ( /* Reports and other documents that quote receipts */
	seq INTEGER NOT NULL /* Number in the order in which they were found */,
	document VARCHAR NOT NULL /* Path or URL of the document that quotes it */,
	receipt VARCHAR /* Id of the receipt; null where the document was read and quotes none */,
	says VARCHAR /* What the document says of it */,
	at DATETIME NOT NULL /* When the document was read; its last reading counts */,
	CONSTRAINT quotes_pkey PRIMARY KEY (seq)
)

CREATE INDEX quotes_document ON quotes (document)

CREATE INDEX quotes_receipt ON quotes (receipt)

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
)

CREATE INDEX incidents_line ON incidents (line)

CREATE INDEX incidents_incident ON incidents (incident)

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
)

CREATE TABLE erased ( /* What a purge erased: the digest of a sealed row stays, so that the seal still holds */
	seq INTEGER NOT NULL /* Number in the order in which rows were erased */,
	what VARCHAR NOT NULL /* Table of the row: receipts, verdicts, supersessions, … */,
	number BIGINT NOT NULL /* Its number */,
	receipt VARCHAR NOT NULL /* Id of the receipt with whose tombstone it went */,
	leaf VARCHAR NOT NULL /* Digest of the row as the seal holds it, SHA-256 in hex; empty if none did */,
	seal VARCHAR NOT NULL /* Root of the seal that holds it; empty if none did */,
	CONSTRAINT erased_pkey PRIMARY KEY (seq)
)

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
)

CREATE TABLE envelopes ( /* Signatures on receipts: with a receipt's bytes each is a DSSE envelope */
	seq INTEGER NOT NULL /* Number in the order in which envelopes came */,
	receipt VARCHAR NOT NULL /* Id of the receipt that is signed: its bytes are the payload */,
	fingerprint VARCHAR NOT NULL /* The key that it says it is signed by */,
	signature VARCHAR NOT NULL /* Ed25519 signature over DSSE's encoding of the receipt, in base64 */,
	at DATETIME NOT NULL /* When it came */,
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */,
	CONSTRAINT envelopes_pkey PRIMARY KEY (seq)
)

CREATE INDEX envelopes_receipt ON envelopes (receipt)

CREATE TABLE tokens ( /* Tokens for the server, by the digest of each */
	seq INTEGER NOT NULL /* Number in the order in which they were given; the last row of a name counts */,
	name VARCHAR NOT NULL /* Who holds it: the actor of every row that it causes */,
	prefix VARCHAR NOT NULL /* The visible beginning of the token */,
	digest VARCHAR /* SHA-256 of the token in hex; null in the row that revokes it */,
	scopes VARCHAR NOT NULL /* What it may do, by blanks: submit, submit:LANE, read, decide, admin */,
	expires DATETIME /* When it ends; null for never */,
	at DATETIME NOT NULL /* When it was given or revoked */,
	CONSTRAINT tokens_pkey PRIMARY KEY (seq)
)

CREATE INDEX tokens_prefix ON tokens (prefix)

CREATE TABLE axis_values ( /* Every value that an axis was seen to have, once */
	seq INTEGER NOT NULL /* Number of the value, by which configurations name it */,
	axis VARCHAR NOT NULL /* Name of the axis, as `receipts axes` prints it */,
	digest BLOB NOT NULL /* SHA-256 of the value */,
	value VARCHAR NOT NULL /* The axis' effective leaves as JSON */,
	CONSTRAINT axis_values_pkey PRIMARY KEY (seq),
	CONSTRAINT axis_values_axis_digest_key UNIQUE (axis, digest)
)

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
)

CREATE INDEX configurations_catalogue ON configurations (catalogue)

CREATE INDEX configurations_line ON configurations (line, seq)

CREATE INDEX configurations_lane ON configurations (lane, catalogue, seq)

CREATE TABLE axes ( /* One row an axis of a configuration: equal leave-one-out digests are one axis apart */
	value INTEGER NOT NULL /* The axis value */,
	configuration INTEGER NOT NULL /* The configuration */,
	leave_one_out BIGINT /* The configuration's digest without this axis; null where none can share it */,
	CONSTRAINT axes_pkey PRIMARY KEY (value, configuration)
)
 WITHOUT ROWID

CREATE INDEX axes_leave_one_out ON axes (leave_one_out, configuration)

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
)

CREATE INDEX receipts_model ON receipts (model, started, seq)

CREATE INDEX receipts_supersedes ON receipts (supersedes)

CREATE INDEX receipts_shape ON receipts (lane, kind, outcome, geometry, layout, chips, sequence_length, micro_batch, depth, provenance, tainted, accelerator, global_batch, path_answer, started, tokens_per_second, step_seconds, mfu, peak_bytes, rate_source, id)

CREATE INDEX receipts_witness_for ON receipts (witness_for)

CREATE INDEX receipts_label ON receipts (label)

CREATE INDEX receipts_host ON receipts (host, started, seq)

CREATE INDEX receipts_revision ON receipts (revision, started, seq)

CREATE INDEX receipts_actor ON receipts (actor)

CREATE INDEX receipts_listed ON receipts (started, seq, lane, kind, outcome, provenance, status, path_answer, tainted, accelerator, chips, sequence_length, micro_batch, global_batch, depth, rate_source, tokens_per_second, step_seconds, mfu, peak_bytes)

CREATE INDEX receipts_context ON receipts (context, started, seq)

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
)

CREATE TABLE supersessions ( /* Receipts that no longer stand */
	seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT /* Number in the order in which they were said */,
	receipt VARCHAR NOT NULL /* Id of the receipt that no longer stands */,
	successor VARCHAR /* Id of the receipt that replaces it; null where it was retracted, its own where that was withdrawn */,
	reason VARCHAR NOT NULL /* Why */,
	at DATETIME NOT NULL /* When it was said */,
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */
)

CREATE INDEX supersessions_successor ON supersessions (successor)

CREATE INDEX supersessions_receipt ON supersessions (receipt)

CREATE TABLE pins ( /* Named references with their history */
	seq INTEGER NOT NULL /* Number in the order in which pins were set; the last one of a name counts */,
	name VARCHAR NOT NULL /* Name without the @ */,
	receipt VARCHAR /* Id of the receipt; null where the pin was taken away */,
	note VARCHAR /* Why it was set */,
	at DATETIME NOT NULL /* When it was set */,
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */,
	CONSTRAINT pins_pkey PRIMARY KEY (seq)
)

CREATE INDEX pins_name ON pins (name)

CREATE TABLE purges ( /* Tombstones: a row here, and it alone, lets a receipt be deleted */
	receipt VARCHAR NOT NULL /* Id of the receipt that was erased */,
	reason VARCHAR NOT NULL /* Why */,
	at DATETIME NOT NULL /* When it was erased */,
	actor VARCHAR /* Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py) */,
	CONSTRAINT purges_pkey PRIMARY KEY (receipt)
)

CREATE TABLE stores ( /* The store's own identity, one row */
	id VARCHAR NOT NULL /* UUID of this store */,
	created_at DATETIME NOT NULL /* When it was made */,
	made_by VARCHAR NOT NULL /* Version of the program that made it */,
	CONSTRAINT stores_pkey PRIMARY KEY (id)
)

CREATE TABLE claim_subjects ( /* Which receipts a claim stood on when it was judged */
	verdict INTEGER NOT NULL /* The verdict */,
	position SMALLINT NOT NULL /* 0, 1, 2 in the verdict's order */,
	side VARCHAR NOT NULL /* baseline, candidate */,
	receipt VARCHAR NOT NULL /* Id of the receipt, stored or not */,
	CONSTRAINT claim_subjects_pkey PRIMARY KEY (verdict, position),
	CONSTRAINT claim_subjects_verdict_fkey FOREIGN KEY(verdict) REFERENCES claim_verdicts (seq) ON DELETE CASCADE
)
 WITHOUT ROWID

CREATE INDEX claim_subjects_receipt ON claim_subjects (receipt)

CREATE TABLE placements ( /* Which configuration a receipt ran, and when */
	receipt INTEGER NOT NULL /* The receipt */,
	configuration INTEGER NOT NULL /* Its configuration */,
	at BIGINT /* run.started, in microseconds since 1970 */,
	CONSTRAINT placements_pkey PRIMARY KEY (receipt),
	CONSTRAINT placements_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq) ON DELETE CASCADE,
	CONSTRAINT placements_configuration_fkey FOREIGN KEY(configuration) REFERENCES configurations (seq)
)

CREATE INDEX placements_configuration ON placements (configuration, at, receipt)

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
)

CREATE INDEX signatures_base ON signatures (base, outcome, micro_batch, sequence_length)

CREATE INDEX signatures_signature ON signatures (signature, receipt, outcome)

CREATE TABLE documents ( /* The bytes of each receipt, never changed */
	receipt INTEGER NOT NULL /* The receipt, by its number */,
	codec VARCHAR NOT NULL /* How body is packed: zlib */,
	size INTEGER NOT NULL /* Bytes of the document as it came */,
	body BLOB NOT NULL /* The document as it came, packed */,
	CONSTRAINT documents_pkey PRIMARY KEY (receipt),
	CONSTRAINT documents_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
)

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

CREATE INDEX subjects_receipt ON subjects (receipt)

CREATE TRIGGER claims_no_update BEFORE UPDATE ON claims BEGIN SELECT RAISE(ABORT, 'claims is append-only: update refused'); END

CREATE TRIGGER claims_no_delete BEFORE DELETE ON claims BEGIN SELECT RAISE(ABORT, 'claims is append-only: delete refused'); END

CREATE TRIGGER claims_no_replace BEFORE INSERT ON claims WHEN EXISTS (SELECT 1 FROM claims WHERE seq = NEW.seq OR id = NEW.id) BEGIN SELECT RAISE(ABORT, 'claims is append-only: replace refused'); END

CREATE TRIGGER claim_supersessions_no_update BEFORE UPDATE ON claim_supersessions BEGIN SELECT RAISE(ABORT, 'claim_supersessions is append-only: update refused'); END

CREATE TRIGGER claim_supersessions_no_delete BEFORE DELETE ON claim_supersessions BEGIN SELECT RAISE(ABORT, 'claim_supersessions is append-only: delete refused'); END

CREATE TRIGGER claim_supersessions_no_replace BEFORE INSERT ON claim_supersessions WHEN EXISTS (SELECT 1 FROM claim_supersessions WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'claim_supersessions is append-only: replace refused'); END

CREATE TRIGGER claim_verdicts_no_update BEFORE UPDATE ON claim_verdicts BEGIN SELECT RAISE(ABORT, 'claim_verdicts is append-only: update refused'); END

CREATE TRIGGER claim_verdicts_no_delete BEFORE DELETE ON claim_verdicts WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN claim_subjects ON claim_subjects.receipt = purges.receipt WHERE claim_subjects.verdict = OLD.seq)) BEGIN SELECT RAISE(ABORT, 'claim_verdicts is append-only: delete refused'); END

CREATE TRIGGER claim_verdicts_no_replace BEFORE INSERT ON claim_verdicts WHEN EXISTS (SELECT 1 FROM claim_verdicts WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'claim_verdicts is append-only: replace refused'); END

CREATE TRIGGER claim_subjects_no_update BEFORE UPDATE ON claim_subjects BEGIN SELECT RAISE(ABORT, 'claim_subjects is append-only: update refused'); END

CREATE TRIGGER claim_subjects_no_delete BEFORE DELETE ON claim_subjects WHEN NOT (NOT EXISTS (SELECT 1 FROM claim_verdicts WHERE claim_verdicts.seq = OLD.verdict)) BEGIN SELECT RAISE(ABORT, 'claim_subjects is append-only: delete refused'); END

CREATE TRIGGER claim_subjects_no_replace BEFORE INSERT ON claim_subjects WHEN EXISTS (SELECT 1 FROM claim_subjects WHERE verdict = NEW.verdict AND position = NEW.position) BEGIN SELECT RAISE(ABORT, 'claim_subjects is append-only: replace refused'); END

CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions is append-only: update refused'); END

CREATE TRIGGER decisions_no_delete BEFORE DELETE ON decisions BEGIN SELECT RAISE(ABORT, 'decisions is append-only: delete refused'); END

CREATE TRIGGER decisions_no_replace BEFORE INSERT ON decisions WHEN EXISTS (SELECT 1 FROM decisions WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'decisions is append-only: replace refused'); END

CREATE TRIGGER quotes_no_update BEFORE UPDATE ON quotes BEGIN SELECT RAISE(ABORT, 'quotes is append-only: update refused'); END

CREATE TRIGGER quotes_no_delete BEFORE DELETE ON quotes BEGIN SELECT RAISE(ABORT, 'quotes is append-only: delete refused'); END

CREATE TRIGGER quotes_no_replace BEFORE INSERT ON quotes WHEN EXISTS (SELECT 1 FROM quotes WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'quotes is append-only: replace refused'); END

CREATE TRIGGER incidents_no_update BEFORE UPDATE ON incidents BEGIN SELECT RAISE(ABORT, 'incidents is append-only: update refused'); END

CREATE TRIGGER incidents_no_delete BEFORE DELETE ON incidents BEGIN SELECT RAISE(ABORT, 'incidents is append-only: delete refused'); END

CREATE TRIGGER incidents_no_replace BEFORE INSERT ON incidents WHEN EXISTS (SELECT 1 FROM incidents WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'incidents is append-only: replace refused'); END

CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals BEGIN SELECT RAISE(ABORT, 'seals is append-only: update refused'); END

CREATE TRIGGER seals_no_delete BEFORE DELETE ON seals BEGIN SELECT RAISE(ABORT, 'seals is append-only: delete refused'); END

CREATE TRIGGER seals_no_replace BEFORE INSERT ON seals WHEN EXISTS (SELECT 1 FROM seals WHERE seq = NEW.seq OR (store = NEW.store AND what = NEW.what AND first = NEW.first AND root = NEW.root)) BEGIN SELECT RAISE(ABORT, 'seals is append-only: replace refused'); END

CREATE TRIGGER erased_no_update BEFORE UPDATE ON erased BEGIN SELECT RAISE(ABORT, 'erased is append-only: update refused'); END

CREATE TRIGGER erased_no_delete BEFORE DELETE ON erased BEGIN SELECT RAISE(ABORT, 'erased is append-only: delete refused'); END

CREATE TRIGGER erased_no_replace BEFORE INSERT ON erased WHEN EXISTS (SELECT 1 FROM erased WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'erased is append-only: replace refused'); END

CREATE TRIGGER trusted_keys_no_update BEFORE UPDATE ON trusted_keys BEGIN SELECT RAISE(ABORT, 'trusted_keys is append-only: update refused'); END

CREATE TRIGGER trusted_keys_no_delete BEFORE DELETE ON trusted_keys BEGIN SELECT RAISE(ABORT, 'trusted_keys is append-only: delete refused'); END

CREATE TRIGGER trusted_keys_no_replace BEFORE INSERT ON trusted_keys WHEN EXISTS (SELECT 1 FROM trusted_keys WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'trusted_keys is append-only: replace refused'); END

CREATE TRIGGER envelopes_no_update BEFORE UPDATE ON envelopes BEGIN SELECT RAISE(ABORT, 'envelopes is append-only: update refused'); END

CREATE TRIGGER envelopes_no_delete BEFORE DELETE ON envelopes BEGIN SELECT RAISE(ABORT, 'envelopes is append-only: delete refused'); END

CREATE TRIGGER envelopes_no_replace BEFORE INSERT ON envelopes WHEN EXISTS (SELECT 1 FROM envelopes WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'envelopes is append-only: replace refused'); END

CREATE TRIGGER tokens_no_update BEFORE UPDATE ON tokens BEGIN SELECT RAISE(ABORT, 'tokens is append-only: update refused'); END

CREATE TRIGGER tokens_no_delete BEFORE DELETE ON tokens BEGIN SELECT RAISE(ABORT, 'tokens is append-only: delete refused'); END

CREATE TRIGGER tokens_no_replace BEFORE INSERT ON tokens WHEN EXISTS (SELECT 1 FROM tokens WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'tokens is append-only: replace refused'); END

CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts is append-only: update refused'); END

CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts WHEN NOT (EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.id)) BEGIN SELECT RAISE(ABORT, 'receipts is append-only: delete refused'); END

CREATE TRIGGER receipts_no_replace BEFORE INSERT ON receipts WHEN EXISTS (SELECT 1 FROM receipts WHERE seq = NEW.seq OR id = NEW.id OR (launch = NEW.launch AND generation = NEW.generation)) OR EXISTS (SELECT 1 FROM purges WHERE purges.receipt = NEW.id) BEGIN SELECT RAISE(ABORT, 'receipts is append-only: replace refused'); END

CREATE TRIGGER documents_no_update BEFORE UPDATE ON documents BEGIN SELECT RAISE(ABORT, 'documents is append-only: update refused'); END

CREATE TRIGGER documents_no_delete BEFORE DELETE ON documents WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt)) BEGIN SELECT RAISE(ABORT, 'documents is append-only: delete refused'); END

CREATE TRIGGER documents_no_replace BEFORE INSERT ON documents WHEN EXISTS (SELECT 1 FROM documents WHERE receipt = NEW.receipt) BEGIN SELECT RAISE(ABORT, 'documents is append-only: replace refused'); END

CREATE TRIGGER verdicts_no_update BEFORE UPDATE ON verdicts BEGIN SELECT RAISE(ABORT, 'verdicts is append-only: update refused'); END

CREATE TRIGGER verdicts_no_delete BEFORE DELETE ON verdicts WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt JOIN subjects ON subjects.receipt = receipts.seq WHERE subjects.verdict = OLD.seq)) BEGIN SELECT RAISE(ABORT, 'verdicts is append-only: delete refused'); END

CREATE TRIGGER verdicts_no_replace BEFORE INSERT ON verdicts WHEN EXISTS (SELECT 1 FROM verdicts WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'verdicts is append-only: replace refused'); END

CREATE TRIGGER subjects_no_update BEFORE UPDATE ON subjects BEGIN SELECT RAISE(ABORT, 'subjects is append-only: update refused'); END

CREATE TRIGGER subjects_no_delete BEFORE DELETE ON subjects WHEN NOT (NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.seq = OLD.verdict)) BEGIN SELECT RAISE(ABORT, 'subjects is append-only: delete refused'); END

CREATE TRIGGER subjects_no_replace BEFORE INSERT ON subjects WHEN EXISTS (SELECT 1 FROM subjects WHERE verdict = NEW.verdict AND position = NEW.position) BEGIN SELECT RAISE(ABORT, 'subjects is append-only: replace refused'); END

CREATE TRIGGER supersessions_no_update BEFORE UPDATE ON supersessions BEGIN SELECT RAISE(ABORT, 'supersessions is append-only: update refused'); END

CREATE TRIGGER supersessions_no_delete BEFORE DELETE ON supersessions WHEN NOT (EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.successor)) BEGIN SELECT RAISE(ABORT, 'supersessions is append-only: delete refused'); END

CREATE TRIGGER supersessions_no_replace BEFORE INSERT ON supersessions WHEN EXISTS (SELECT 1 FROM supersessions WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'supersessions is append-only: replace refused'); END

CREATE TRIGGER pins_no_update BEFORE UPDATE ON pins BEGIN SELECT RAISE(ABORT, 'pins is append-only: update refused'); END

CREATE TRIGGER pins_no_delete BEFORE DELETE ON pins BEGIN SELECT RAISE(ABORT, 'pins is append-only: delete refused'); END

CREATE TRIGGER pins_no_replace BEFORE INSERT ON pins WHEN EXISTS (SELECT 1 FROM pins WHERE seq = NEW.seq) BEGIN SELECT RAISE(ABORT, 'pins is append-only: replace refused'); END

CREATE TRIGGER purges_no_update BEFORE UPDATE ON purges BEGIN SELECT RAISE(ABORT, 'purges is append-only: update refused'); END

CREATE TRIGGER purges_no_delete BEFORE DELETE ON purges BEGIN SELECT RAISE(ABORT, 'purges is append-only: delete refused'); END

CREATE TRIGGER purges_no_replace BEFORE INSERT ON purges WHEN EXISTS (SELECT 1 FROM purges WHERE receipt = NEW.receipt) BEGIN SELECT RAISE(ABORT, 'purges is append-only: replace refused'); END

CREATE TRIGGER stores_no_update BEFORE UPDATE ON stores BEGIN SELECT RAISE(ABORT, 'stores is append-only: update refused'); END

CREATE TRIGGER stores_no_delete BEFORE DELETE ON stores BEGIN SELECT RAISE(ABORT, 'stores is append-only: delete refused'); END

CREATE TRIGGER stores_no_replace BEFORE INSERT ON stores WHEN EXISTS (SELECT 1 FROM stores) BEGIN SELECT RAISE(ABORT, 'stores is append-only: replace refused'); END
