CREATE TABLE claims (
	seq BIGSERIAL NOT NULL,
	id VARCHAR COLLATE "C" NOT NULL,
	kind VARCHAR COLLATE "C" NOT NULL,
	body VARCHAR COLLATE "C" NOT NULL,
	origin VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT claims_pkey PRIMARY KEY (seq),
	CONSTRAINT claims_id_key UNIQUE (id)
)

COMMENT ON TABLE claims IS 'Sentences about performance, never edited: one that changes is superseded by another'

COMMENT ON COLUMN claims.seq IS 'Number in the order in which claims were added'

COMMENT ON COLUMN claims.id IS 'Name of the claim, given by its author'

COMMENT ON COLUMN claims.kind IS 'speedup, equivalence, ceiling, mfu, memory, does-not-fit, arithmetic'

COMMENT ON COLUMN claims.body IS 'The claim as JSON (schema/claims-1.schema.json)'

COMMENT ON COLUMN claims.origin IS 'File that it was added from'

COMMENT ON COLUMN claims.at IS 'When it was added'

COMMENT ON COLUMN claims.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE claim_supersessions (
	seq BIGSERIAL NOT NULL,
	claim VARCHAR COLLATE "C" NOT NULL,
	successor VARCHAR COLLATE "C",
	reason VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT claim_supersessions_pkey PRIMARY KEY (seq)
)

CREATE INDEX claim_supersessions_claim ON claim_supersessions (claim)

COMMENT ON TABLE claim_supersessions IS 'Claims that no longer stand'

COMMENT ON COLUMN claim_supersessions.seq IS 'Number in the order in which they were said'

COMMENT ON COLUMN claim_supersessions.claim IS 'Id of the claim that no longer stands'

COMMENT ON COLUMN claim_supersessions.successor IS 'Id of the claim that replaces it; null where it was withdrawn'

COMMENT ON COLUMN claim_supersessions.reason IS 'Why'

COMMENT ON COLUMN claim_supersessions.at IS 'When it was said'

COMMENT ON COLUMN claim_supersessions.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE claim_verdicts (
	seq BIGSERIAL NOT NULL,
	claim VARCHAR COLLATE "C" NOT NULL,
	status VARCHAR COLLATE "C" NOT NULL,
	rules VARCHAR COLLATE "C" NOT NULL,
	judge VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	codec VARCHAR COLLATE "C" NOT NULL,
	body BYTEA NOT NULL,
	CONSTRAINT claim_verdicts_pkey PRIMARY KEY (seq)
)

CREATE INDEX claim_verdicts_claim ON claim_verdicts (claim)

COMMENT ON TABLE claim_verdicts IS 'What was said of claims, and under which rule set; the last one of a claim counts'

COMMENT ON COLUMN claim_verdicts.seq IS 'Number in the order in which verdicts were given'

COMMENT ON COLUMN claim_verdicts.claim IS 'Id of the claim'

COMMENT ON COLUMN claim_verdicts.status IS 'supported, refuted, unproven, stale'

COMMENT ON COLUMN claim_verdicts.rules IS 'Digest of the rule set'

COMMENT ON COLUMN claim_verdicts.judge IS 'Version of the judge'

COMMENT ON COLUMN claim_verdicts.at IS 'When it was judged'

COMMENT ON COLUMN claim_verdicts.codec IS 'How body is packed: zlib'

COMMENT ON COLUMN claim_verdicts.body IS 'The verdict as JSON, packed'

CREATE TABLE decisions (
	seq BIGSERIAL NOT NULL,
	receipt VARCHAR COLLATE "C" NOT NULL,
	decision VARCHAR COLLATE "C" NOT NULL,
	reason VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT decisions_pkey PRIMARY KEY (seq)
)

CREATE INDEX decisions_receipt ON decisions (receipt)

COMMENT ON TABLE decisions IS 'What was decided on a receipt, shown wherever it is quoted'

COMMENT ON COLUMN decisions.seq IS 'Number in the order in which they were made; the last one of a receipt counts'

COMMENT ON COLUMN decisions.receipt IS 'Id of the receipt'

COMMENT ON COLUMN decisions.decision IS 'ship, hold, drop'

COMMENT ON COLUMN decisions.reason IS 'Why'

COMMENT ON COLUMN decisions.at IS 'When it was made'

COMMENT ON COLUMN decisions.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE quotes (
	seq BIGSERIAL NOT NULL,
	document VARCHAR COLLATE "C" NOT NULL,
	receipt VARCHAR COLLATE "C",
	says VARCHAR COLLATE "C",
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT quotes_pkey PRIMARY KEY (seq)
)

CREATE INDEX quotes_document ON quotes (document)

CREATE INDEX quotes_receipt ON quotes (receipt)

COMMENT ON TABLE quotes IS 'Reports and other documents that quote receipts'

COMMENT ON COLUMN quotes.seq IS 'Number in the order in which they were found'

COMMENT ON COLUMN quotes.document IS 'Path or URL of the document that quotes it'

COMMENT ON COLUMN quotes.receipt IS 'Id of the receipt; null where the document was read and quotes none'

COMMENT ON COLUMN quotes.says IS 'What the document says of it'

COMMENT ON COLUMN quotes.at IS 'When the document was read; its last reading counts'

CREATE TABLE incidents (
	seq BIGSERIAL NOT NULL,
	incident VARCHAR COLLATE "C" NOT NULL,
	event VARCHAR COLLATE "C" NOT NULL,
	line BIGINT NOT NULL,
	kind VARCHAR COLLATE "C" NOT NULL,
	metric VARCHAR COLLATE "C" NOT NULL,
	body VARCHAR COLLATE "C" NOT NULL,
	owner VARCHAR COLLATE "C",
	actor VARCHAR COLLATE "C",
	reason VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT incidents_pkey PRIMARY KEY (seq)
)

CREATE INDEX incidents_line ON incidents (line)

CREATE INDEX incidents_incident ON incidents (incident)

COMMENT ON TABLE incidents IS 'What watch opened and what closed, never edited: one incident a change point, however many runs see it'

COMMENT ON COLUMN incidents.seq IS 'Number in the order in which events were recorded; the last one of an incident counts'

COMMENT ON COLUMN incidents.incident IS 'Id of the incident: 12 hex digits over line, kind, metric and first launch'

COMMENT ON COLUMN incidents.event IS 'opened, closed'

COMMENT ON COLUMN incidents.line IS 'Digest of the line: the configuration without code, wheels, image and driver'

COMMENT ON COLUMN incidents.kind IS 'run.kind of the line''s launches'

COMMENT ON COLUMN incidents.metric IS 'The metric that stepped'

COMMENT ON COLUMN incidents.body IS 'The change as JSON: size, interval, axes that moved, launches on both sides'

COMMENT ON COLUMN incidents.owner IS 'Who looks after it; null where nobody was named'

COMMENT ON COLUMN incidents.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

COMMENT ON COLUMN incidents.reason IS 'Why it was opened or closed'

COMMENT ON COLUMN incidents.at IS 'When it was recorded'

CREATE TABLE seals (
	seq BIGSERIAL NOT NULL,
	store VARCHAR COLLATE "C" NOT NULL,
	what VARCHAR COLLATE "C" NOT NULL,
	first BIGINT NOT NULL,
	last BIGINT NOT NULL,
	held INTEGER NOT NULL,
	root VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT seals_pkey PRIMARY KEY (seq),
	CONSTRAINT seals_store_what_first_root_key UNIQUE (store, what, first, root)
)

COMMENT ON TABLE seals IS 'Merkle roots: a row that was changed or taken away since is found'

COMMENT ON COLUMN seals.seq IS 'Number in the order in which seals were written'

COMMENT ON COLUMN seals.store IS 'Id of this store, which the seal binds'

COMMENT ON COLUMN seals.what IS 'Table of the rows: receipts, verdicts, supersessions, …'

COMMENT ON COLUMN seals.first IS 'Number of the first row'

COMMENT ON COLUMN seals.last IS 'Number of the last row'

COMMENT ON COLUMN seals.held IS 'How many rows it holds'

COMMENT ON COLUMN seals.root IS 'Merkle root over the rows'' digests, SHA-256 in hex'

COMMENT ON COLUMN seals.at IS 'When it was sealed'

CREATE TABLE erased (
	seq BIGSERIAL NOT NULL,
	what VARCHAR COLLATE "C" NOT NULL,
	number BIGINT NOT NULL,
	receipt VARCHAR COLLATE "C" NOT NULL,
	leaf VARCHAR COLLATE "C" NOT NULL,
	seal VARCHAR COLLATE "C" NOT NULL,
	CONSTRAINT erased_pkey PRIMARY KEY (seq)
)

COMMENT ON TABLE erased IS 'What a purge erased: the digest of a sealed row stays, so that the seal still holds'

COMMENT ON COLUMN erased.seq IS 'Number in the order in which rows were erased'

COMMENT ON COLUMN erased.what IS 'Table of the row: receipts, verdicts, supersessions, …'

COMMENT ON COLUMN erased.number IS 'Its number'

COMMENT ON COLUMN erased.receipt IS 'Id of the receipt with whose tombstone it went'

COMMENT ON COLUMN erased.leaf IS 'Digest of the row as the seal holds it, SHA-256 in hex; empty if none did'

COMMENT ON COLUMN erased.seal IS 'Root of the seal that holds it; empty if none did'

CREATE TABLE trusted_keys (
	seq BIGSERIAL NOT NULL,
	name VARCHAR COLLATE "C" NOT NULL,
	fingerprint VARCHAR COLLATE "C" NOT NULL,
	key VARCHAR COLLATE "C" NOT NULL,
	lanes VARCHAR COLLATE "C" NOT NULL,
	ends TIMESTAMP WITH TIME ZONE,
	revoked VARCHAR COLLATE "C",
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT trusted_keys_pkey PRIMARY KEY (seq)
)

COMMENT ON TABLE trusted_keys IS 'Public keys whose signatures count'

COMMENT ON COLUMN trusted_keys.seq IS 'Number in the order in which keys were trusted or revoked; the last row of a key counts'

COMMENT ON COLUMN trusted_keys.name IS 'Who holds the key'

COMMENT ON COLUMN trusted_keys.fingerprint IS 'SHA-256 of the key as OpenSSH prints it'

COMMENT ON COLUMN trusted_keys.key IS 'The public Ed25519 key in OpenSSH''s form'

COMMENT ON COLUMN trusted_keys.lanes IS 'Lanes whose receipts it may sign, by blanks; empty for all'

COMMENT ON COLUMN trusted_keys.ends IS 'When it ends; null for never'

COMMENT ON COLUMN trusted_keys.revoked IS 'Why the row revokes the key; null where it trusts it'

COMMENT ON COLUMN trusted_keys.at IS 'When it was trusted or revoked'

COMMENT ON COLUMN trusted_keys.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE envelopes (
	seq BIGSERIAL NOT NULL,
	receipt VARCHAR COLLATE "C" NOT NULL,
	fingerprint VARCHAR COLLATE "C" NOT NULL,
	signature VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT envelopes_pkey PRIMARY KEY (seq)
)

CREATE INDEX envelopes_receipt ON envelopes (receipt)

COMMENT ON TABLE envelopes IS 'Signatures on receipts: with a receipt''s bytes each is a DSSE envelope'

COMMENT ON COLUMN envelopes.seq IS 'Number in the order in which envelopes came'

COMMENT ON COLUMN envelopes.receipt IS 'Id of the receipt that is signed: its bytes are the payload'

COMMENT ON COLUMN envelopes.fingerprint IS 'The key that it says it is signed by'

COMMENT ON COLUMN envelopes.signature IS 'Ed25519 signature over DSSE''s encoding of the receipt, in base64'

COMMENT ON COLUMN envelopes.at IS 'When it came'

COMMENT ON COLUMN envelopes.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE tokens (
	seq BIGSERIAL NOT NULL,
	name VARCHAR COLLATE "C" NOT NULL,
	prefix VARCHAR COLLATE "C" NOT NULL,
	digest VARCHAR COLLATE "C",
	scopes VARCHAR COLLATE "C" NOT NULL,
	expires TIMESTAMP WITH TIME ZONE,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT tokens_pkey PRIMARY KEY (seq)
)

CREATE INDEX tokens_prefix ON tokens (prefix)

COMMENT ON TABLE tokens IS 'Tokens for the server, by the digest of each'

COMMENT ON COLUMN tokens.seq IS 'Number in the order in which they were given; the last row of a name counts'

COMMENT ON COLUMN tokens.name IS 'Who holds it: the actor of every row that it causes'

COMMENT ON COLUMN tokens.prefix IS 'The visible beginning of the token'

COMMENT ON COLUMN tokens.digest IS 'SHA-256 of the token in hex; null in the row that revokes it'

COMMENT ON COLUMN tokens.scopes IS 'What it may do, by blanks: submit, submit:LANE, read, decide, admin'

COMMENT ON COLUMN tokens.expires IS 'When it ends; null for never'

COMMENT ON COLUMN tokens.at IS 'When it was given or revoked'

CREATE TABLE axis_values (
	seq BIGSERIAL NOT NULL,
	axis VARCHAR COLLATE "C" NOT NULL,
	digest BYTEA NOT NULL,
	value VARCHAR COLLATE "C" NOT NULL,
	CONSTRAINT axis_values_pkey PRIMARY KEY (seq),
	CONSTRAINT axis_values_axis_digest_key UNIQUE (axis, digest)
)

COMMENT ON TABLE axis_values IS 'Every value that an axis was seen to have, once'

COMMENT ON COLUMN axis_values.seq IS 'Number of the value, by which configurations name it'

COMMENT ON COLUMN axis_values.axis IS 'Name of the axis, as `receipts axes` prints it'

COMMENT ON COLUMN axis_values.digest IS 'SHA-256 of the value'

COMMENT ON COLUMN axis_values.value IS 'The axis'' effective leaves as JSON'

CREATE TABLE configurations (
	seq BIGSERIAL NOT NULL,
	digest BIGINT NOT NULL,
	catalogue BIGINT NOT NULL,
	lane VARCHAR COLLATE "C" NOT NULL,
	anchor VARCHAR COLLATE "C",
	line BIGINT,
	whole BYTEA NOT NULL,
	value_numbers BYTEA NOT NULL,
	CONSTRAINT configurations_pkey PRIMARY KEY (seq),
	CONSTRAINT configurations_digest_whole_key UNIQUE (digest, whole)
)

CREATE INDEX configurations_catalogue ON configurations (catalogue)

CREATE INDEX configurations_line ON configurations (line, seq)

CREATE INDEX configurations_lane ON configurations (lane, catalogue, seq)

COMMENT ON TABLE configurations IS 'Every combination of axis values, once'

COMMENT ON COLUMN configurations.seq IS 'Number of the configuration'

COMMENT ON COLUMN configurations.digest IS 'Sum of the digests of its parts, modulo 2^64, signed: what one axis adds can be taken out'

COMMENT ON COLUMN configurations.catalogue IS 'Digest of the catalogue of axes and of the lane that read the receipt, signed'

COMMENT ON COLUMN configurations.lane IS 'run.lane, its first 200 characters'

COMMENT ON COLUMN configurations.anchor IS 'What fills all that is unstated: the context, else the receipt''s own id; null if all is stated'

COMMENT ON COLUMN configurations.line IS 'Digest without code, wheels, image and driver; null where what else is unstated is one receipt''s'

COMMENT ON COLUMN configurations.whole IS '16 bytes of SHA-256 over all of it, compared on every hit'

COMMENT ON COLUMN configurations.value_numbers IS 'Numbers of its axis values, ascending, 4 bytes each'

CREATE TABLE axes (
	value INTEGER NOT NULL,
	configuration INTEGER NOT NULL,
	leave_one_out BIGINT,
	CONSTRAINT axes_pkey PRIMARY KEY (value, configuration)
)

CREATE INDEX axes_leave_one_out ON axes (leave_one_out, configuration)

COMMENT ON TABLE axes IS 'One row an axis of a configuration: equal leave-one-out digests are one axis apart'

COMMENT ON COLUMN axes.value IS 'The axis value'

COMMENT ON COLUMN axes.configuration IS 'The configuration'

COMMENT ON COLUMN axes.leave_one_out IS 'The configuration''s digest without this axis; null where none can share it'

CREATE TABLE receipts (
	seq BIGSERIAL NOT NULL,
	id VARCHAR COLLATE "C" NOT NULL,
	launch VARCHAR COLLATE "C" NOT NULL,
	generation SMALLINT NOT NULL,
	lane VARCHAR COLLATE "C" NOT NULL,
	kind VARCHAR COLLATE "C" NOT NULL,
	outcome VARCHAR COLLATE "C" NOT NULL,
	provenance VARCHAR COLLATE "C" NOT NULL,
	status VARCHAR COLLATE "C" NOT NULL,
	path_answer VARCHAR COLLATE "C" NOT NULL,
	tainted VARCHAR COLLATE "C" NOT NULL,
	undecided VARCHAR COLLATE "C" NOT NULL,
	schema_version VARCHAR COLLATE "C" NOT NULL,
	started TIMESTAMP WITH TIME ZONE NOT NULL,
	finished TIMESTAMP WITH TIME ZONE,
	submitted_at TIMESTAMP WITH TIME ZONE NOT NULL,
	label VARCHAR COLLATE "C",
	session VARCHAR COLLATE "C",
	context VARCHAR COLLATE "C",
	host VARCHAR COLLATE "C",
	revision VARCHAR COLLATE "C",
	supersedes VARCHAR COLLATE "C",
	supersedes_reason VARCHAR COLLATE "C",
	accelerator VARCHAR COLLATE "C",
	chips BIGINT,
	sequence_length BIGINT,
	micro_batch BIGINT,
	global_batch BIGINT,
	depth BIGINT,
	model VARCHAR COLLATE "C",
	family VARCHAR COLLATE "C",
	tokens_per_second DOUBLE PRECISION,
	tokens_per_second_per_chip DOUBLE PRECISION,
	step_seconds DOUBLE PRECISION,
	tflops_per_second_per_chip DOUBLE PRECISION,
	mfu DOUBLE PRECISION,
	rate_source VARCHAR COLLATE "C",
	rate_of VARCHAR COLLATE "C",
	peak_bytes DOUBLE PRECISION,
	peak_reserved_bytes DOUBLE PRECISION,
	compile_seconds DOUBLE PRECISION,
	failure_phase VARCHAR COLLATE "C",
	failure_class VARCHAR COLLATE "C",
	witness_for VARCHAR COLLATE "C",
	geometry BIGINT,
	layout BIGINT,
	actor VARCHAR COLLATE "C",
	CONSTRAINT receipts_pkey PRIMARY KEY (seq),
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

COMMENT ON TABLE receipts IS 'One row a receipt: what lists, reports and rules look it up by'

COMMENT ON COLUMN receipts.seq IS 'Number in the order in which the store took receipts in'

COMMENT ON COLUMN receipts.id IS 'SHA-256 of the document as it came, in hex'

COMMENT ON COLUMN receipts.launch IS 'run.launch, the unit of replication'

COMMENT ON COLUMN receipts.generation IS '0 for a launch''s first receipt here, 1 for the one after it; two writers cannot both take one'

COMMENT ON COLUMN receipts.lane IS 'run.lane, its first 200 characters'

COMMENT ON COLUMN receipts.kind IS 'run.kind: training, microbench, profile, serving'

COMMENT ON COLUMN receipts.outcome IS 'run.outcome: ok, oom, crash, hang, nan, preempted, unknown'

COMMENT ON COLUMN receipts.provenance IS 'run.provenance: measured, quoted, projected, illustrative'

COMMENT ON COLUMN receipts.status IS 'Status when it was submitted: valid, open, invalid'

COMMENT ON COLUMN receipts.path_answer IS 'Path when it was submitted: witnessed, unwitnessed, left'

COMMENT ON COLUMN receipts.tainted IS 'Kinds of metric that errors spoil by that verdict: all, rate, mfu, …; none'

COMMENT ON COLUMN receipts.undecided IS 'Kinds of metric that open questions are about by that verdict, likewise'

COMMENT ON COLUMN receipts.schema_version IS 'Version of the document'

COMMENT ON COLUMN receipts.started IS 'run.started'

COMMENT ON COLUMN receipts.finished IS 'run.finished'

COMMENT ON COLUMN receipts.submitted_at IS 'When the store took it in'

COMMENT ON COLUMN receipts.label IS 'run.label'

COMMENT ON COLUMN receipts.session IS 'run.session, the launches that were made to answer one question'

COMMENT ON COLUMN receipts.context IS 'run.context, the base configuration'

COMMENT ON COLUMN receipts.host IS 'run.host'

COMMENT ON COLUMN receipts.revision IS 'code.commit'

COMMENT ON COLUMN receipts.supersedes IS 'run.supersedes.target, the launch or id that it replaces'

COMMENT ON COLUMN receipts.supersedes_reason IS 'run.supersedes.reason'

COMMENT ON COLUMN receipts.accelerator IS 'hardware.accelerator, by its name in the registry, else its first 200 characters'

COMMENT ON COLUMN receipts.chips IS 'hardware.chips'

COMMENT ON COLUMN receipts.sequence_length IS 'batch.sequence_length, tokens'

COMMENT ON COLUMN receipts.micro_batch IS 'batch.micro_batch, sequences'

COMMENT ON COLUMN receipts.global_batch IS 'batch.global_batch, sequences'

COMMENT ON COLUMN receipts.depth IS 'model.depth, blocks'

COMMENT ON COLUMN receipts.model IS 'model.name'

COMMENT ON COLUMN receipts.family IS 'model.family'

COMMENT ON COLUMN receipts.tokens_per_second IS 'Tokens a second over all chips'

COMMENT ON COLUMN receipts.tokens_per_second_per_chip IS 'Tokens a second a chip'

COMMENT ON COLUMN receipts.step_seconds IS 'Median steady step, or the time stated; seconds'

COMMENT ON COLUMN receipts.tflops_per_second_per_chip IS 'TFLOP/s a chip'

COMMENT ON COLUMN receipts.mfu IS 'Model FLOPs utilization, a fraction'

COMMENT ON COLUMN receipts.rate_source IS 'Where tokens_per_second came from: steps, unsteady, stated, derived'

COMMENT ON COLUMN receipts.rate_of IS 'Which steps tokens_per_second is of, where it comes from them: tokens over the time of 12 of 20 steps'

COMMENT ON COLUMN receipts.peak_bytes IS 'Highest live peak of a chip, bytes'

COMMENT ON COLUMN receipts.peak_reserved_bytes IS 'Highest pool of a chip, bytes'

COMMENT ON COLUMN receipts.compile_seconds IS 'Compile time, seconds'

COMMENT ON COLUMN receipts.failure_phase IS 'failure.phase'

COMMENT ON COLUMN receipts.failure_class IS 'failure.class'

COMMENT ON COLUMN receipts.witness_for IS 'run.witness_for, the launch or id whose path it witnesses'

COMMENT ON COLUMN receipts.geometry IS 'Digest of the axes of the model but its depth, and of the accelerator'

COMMENT ON COLUMN receipts.layout IS 'Digest of the axes of parallelism but its tuned constants'

COMMENT ON COLUMN receipts.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE verdicts (
	seq BIGSERIAL NOT NULL,
	kind VARCHAR COLLATE "C" NOT NULL,
	status VARCHAR COLLATE "C" NOT NULL,
	metric VARCHAR COLLATE "C",
	rules VARCHAR COLLATE "C" NOT NULL,
	judge VARCHAR COLLATE "C" NOT NULL,
	judged_at TIMESTAMP WITH TIME ZONE NOT NULL,
	codec VARCHAR COLLATE "C" NOT NULL,
	body BYTEA NOT NULL,
	CONSTRAINT verdicts_pkey PRIMARY KEY (seq)
)

COMMENT ON TABLE verdicts IS 'What the rules said, and under which rule set; a later verdict does not replace an earlier one'

COMMENT ON COLUMN verdicts.seq IS 'Number in the order in which verdicts were given'

COMMENT ON COLUMN verdicts.kind IS 'What was judged: receipt, comparison'

COMMENT ON COLUMN verdicts.status IS 'valid, open, invalid; accepted, rejected, inconclusive'

COMMENT ON COLUMN verdicts.metric IS 'The metric asked for, in a comparison'

COMMENT ON COLUMN verdicts.rules IS 'Digest of the rule set'

COMMENT ON COLUMN verdicts.judge IS 'Version of the judge'

COMMENT ON COLUMN verdicts.judged_at IS 'When it was judged'

COMMENT ON COLUMN verdicts.codec IS 'How body is packed: zlib'

COMMENT ON COLUMN verdicts.body IS 'The verdict as JSON, packed'

CREATE TABLE supersessions (
	seq BIGSERIAL NOT NULL,
	receipt VARCHAR COLLATE "C" NOT NULL,
	successor VARCHAR COLLATE "C",
	reason VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT supersessions_pkey PRIMARY KEY (seq)
)

CREATE INDEX supersessions_successor ON supersessions (successor)

CREATE INDEX supersessions_receipt ON supersessions (receipt)

COMMENT ON TABLE supersessions IS 'Receipts that no longer stand'

COMMENT ON COLUMN supersessions.seq IS 'Number in the order in which they were said'

COMMENT ON COLUMN supersessions.receipt IS 'Id of the receipt that no longer stands'

COMMENT ON COLUMN supersessions.successor IS 'Id of the receipt that replaces it; null where it was retracted, its own where that was withdrawn'

COMMENT ON COLUMN supersessions.reason IS 'Why'

COMMENT ON COLUMN supersessions.at IS 'When it was said'

COMMENT ON COLUMN supersessions.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE pins (
	seq BIGSERIAL NOT NULL,
	name VARCHAR COLLATE "C" NOT NULL,
	receipt VARCHAR COLLATE "C",
	note VARCHAR COLLATE "C",
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT pins_pkey PRIMARY KEY (seq)
)

CREATE INDEX pins_name ON pins (name)

COMMENT ON TABLE pins IS 'Named references with their history'

COMMENT ON COLUMN pins.seq IS 'Number in the order in which pins were set; the last one of a name counts'

COMMENT ON COLUMN pins.name IS 'Name without the @'

COMMENT ON COLUMN pins.receipt IS 'Id of the receipt; null where the pin was taken away'

COMMENT ON COLUMN pins.note IS 'Why it was set'

COMMENT ON COLUMN pins.at IS 'When it was set'

COMMENT ON COLUMN pins.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE purges (
	receipt VARCHAR COLLATE "C" NOT NULL,
	reason VARCHAR COLLATE "C" NOT NULL,
	at TIMESTAMP WITH TIME ZONE NOT NULL,
	actor VARCHAR COLLATE "C",
	CONSTRAINT purges_pkey PRIMARY KEY (receipt)
)

COMMENT ON TABLE purges IS 'Tombstones: a row here, and it alone, lets a receipt be deleted'

COMMENT ON COLUMN purges.receipt IS 'Id of the receipt that was erased'

COMMENT ON COLUMN purges.reason IS 'Why'

COMMENT ON COLUMN purges.at IS 'When it was erased'

COMMENT ON COLUMN purges.actor IS 'Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)'

CREATE TABLE stores (
	id VARCHAR COLLATE "C" NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	made_by VARCHAR COLLATE "C" NOT NULL,
	CONSTRAINT stores_pkey PRIMARY KEY (id)
)

COMMENT ON TABLE stores IS 'The store''s own identity, one row'

COMMENT ON COLUMN stores.id IS 'UUID of this store'

COMMENT ON COLUMN stores.created_at IS 'When it was made'

COMMENT ON COLUMN stores.made_by IS 'Version of the program that made it'

CREATE TABLE claim_subjects (
	verdict BIGINT NOT NULL,
	position SMALLINT NOT NULL,
	side VARCHAR COLLATE "C" NOT NULL,
	receipt VARCHAR COLLATE "C" NOT NULL,
	CONSTRAINT claim_subjects_pkey PRIMARY KEY (verdict, position),
	CONSTRAINT claim_subjects_verdict_fkey FOREIGN KEY(verdict) REFERENCES claim_verdicts (seq) ON DELETE CASCADE
)

CREATE INDEX claim_subjects_receipt ON claim_subjects (receipt)

COMMENT ON TABLE claim_subjects IS 'Which receipts a claim stood on when it was judged'

COMMENT ON COLUMN claim_subjects.verdict IS 'The verdict'

COMMENT ON COLUMN claim_subjects.position IS '0, 1, 2 in the verdict''s order'

COMMENT ON COLUMN claim_subjects.side IS 'baseline, candidate'

COMMENT ON COLUMN claim_subjects.receipt IS 'Id of the receipt, stored or not'

CREATE TABLE placements (
	receipt BIGINT NOT NULL,
	configuration BIGINT NOT NULL,
	at BIGINT,
	CONSTRAINT placements_pkey PRIMARY KEY (receipt),
	CONSTRAINT placements_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq) ON DELETE CASCADE,
	CONSTRAINT placements_configuration_fkey FOREIGN KEY(configuration) REFERENCES configurations (seq)
)

CREATE INDEX placements_configuration ON placements (configuration, at, receipt)

COMMENT ON TABLE placements IS 'Which configuration a receipt ran, and when'

COMMENT ON COLUMN placements.receipt IS 'The receipt'

COMMENT ON COLUMN placements.configuration IS 'Its configuration'

COMMENT ON COLUMN placements.at IS 'run.started, in microseconds since 1970'

CREATE TABLE signatures (
	receipt BIGINT NOT NULL,
	signature VARCHAR COLLATE "C" NOT NULL,
	base BIGINT NOT NULL,
	outcome VARCHAR COLLATE "C" NOT NULL,
	micro_batch BIGINT,
	sequence_length BIGINT,
	extras VARCHAR COLLATE "C",
	CONSTRAINT signatures_pkey PRIMARY KEY (receipt),
	CONSTRAINT signatures_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq) ON DELETE CASCADE
)

CREATE INDEX signatures_base ON signatures (base, outcome, micro_batch, sequence_length)

CREATE INDEX signatures_signature ON signatures (signature, receipt, outcome)

COMMENT ON TABLE signatures IS 'What a launch is called before it is tried: the same signature failed or worked'

COMMENT ON COLUMN signatures.receipt IS 'The receipt'

COMMENT ON COLUMN signatures.signature IS 'SHA-256 over what decides whether a launch fits, in hex'

COMMENT ON COLUMN signatures.base IS '8 bytes of the same without the pressures beside it, signed'

COMMENT ON COLUMN signatures.outcome IS 'run.outcome: the receipt''s own, so that a look-up reads no row of it'

COMMENT ON COLUMN signatures.micro_batch IS 'batch.micro_batch, sequences'

COMMENT ON COLUMN signatures.sequence_length IS 'batch.sequence_length, tokens'

COMMENT ON COLUMN signatures.extras IS 'Features that are on and that the lane calls non-essential, as JSON'

CREATE TABLE documents (
	receipt BIGINT NOT NULL,
	codec VARCHAR COLLATE "C" NOT NULL,
	size INTEGER NOT NULL,
	body BYTEA NOT NULL,
	CONSTRAINT documents_pkey PRIMARY KEY (receipt),
	CONSTRAINT documents_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
)

COMMENT ON TABLE documents IS 'The bytes of each receipt, never changed'

COMMENT ON COLUMN documents.receipt IS 'The receipt, by its number'

COMMENT ON COLUMN documents.codec IS 'How body is packed: zlib'

COMMENT ON COLUMN documents.size IS 'Bytes of the document as it came'

COMMENT ON COLUMN documents.body IS 'The document as it came, packed'

CREATE TABLE subjects (
	verdict BIGINT NOT NULL,
	position SMALLINT NOT NULL,
	side VARCHAR COLLATE "C" NOT NULL,
	receipt BIGINT NOT NULL,
	CONSTRAINT subjects_pkey PRIMARY KEY (verdict, position),
	CONSTRAINT subjects_verdict_fkey FOREIGN KEY(verdict) REFERENCES verdicts (seq) ON DELETE CASCADE,
	CONSTRAINT subjects_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
)

CREATE INDEX subjects_receipt ON subjects (receipt)

COMMENT ON TABLE subjects IS 'Which receipts a verdict speaks of'

COMMENT ON COLUMN subjects.verdict IS 'The verdict'

COMMENT ON COLUMN subjects.position IS '0, 1, 2 in the verdict''s order'

COMMENT ON COLUMN subjects.side IS 'receipt, or a and b in a comparison'

COMMENT ON COLUMN subjects.receipt IS 'The receipt, by its number'

CREATE FUNCTION receipts_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, lower(TG_OP);
END
$$

CREATE FUNCTION receipts_erased() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges WHERE purges.receipt = NEW.id) THEN
        RAISE EXCEPTION 'receipts: insert refused: % was purged', NEW.id;
    END IF;
    RETURN NEW;
END
$$

CREATE TRIGGER receipts_no_replace BEFORE INSERT ON receipts FOR EACH ROW EXECUTE FUNCTION receipts_erased()

CREATE FUNCTION receipts_withdrawn() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    replaced boolean;
BEGIN
    IF has_table_privilege(current_user, format('%I.pins', TG_TABLE_SCHEMA), 'INSERT') THEN
        RETURN NEW;
    END IF;
    EXECUTE format(
        'SELECT EXISTS (SELECT 1 FROM %1$I.receipts AS earlier JOIN %1$I.receipts AS later '
        'ON later.launch = earlier.launch AND later.id <> earlier.id WHERE earlier.id = $1 AND later.id = $2 '
        'AND later.supersedes IN (earlier.id, earlier.launch) AND (earlier.actor IS NULL '
        'OR split_part(later.actor, '' via '', 1) = split_part(earlier.actor, '' via '', 1)))', TG_TABLE_SCHEMA
    ) INTO replaced USING NEW.receipt, NEW.successor;
    IF NOT replaced THEN
        RAISE EXCEPTION 'permission denied to withdraw %', NEW.receipt USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END
$$

CREATE TRIGGER supersessions_of_launch BEFORE INSERT ON supersessions FOR EACH ROW EXECUTE FUNCTION receipts_withdrawn()

CREATE TRIGGER claims_no_update BEFORE UPDATE ON claims FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claims_no_truncate BEFORE TRUNCATE ON claims FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claims_no_delete BEFORE DELETE ON claims FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claim_supersessions_no_update BEFORE UPDATE ON claim_supersessions FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claim_supersessions_no_truncate BEFORE TRUNCATE ON claim_supersessions FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claim_supersessions_no_delete BEFORE DELETE ON claim_supersessions FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claim_verdicts_no_update BEFORE UPDATE ON claim_verdicts FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claim_verdicts_no_truncate BEFORE TRUNCATE ON claim_verdicts FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION claim_verdicts_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges JOIN claim_subjects ON claim_subjects.receipt = purges.receipt WHERE claim_subjects.verdict = OLD.seq) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'claim_verdicts is append-only: delete refused';
END
$$

CREATE TRIGGER claim_verdicts_no_delete BEFORE DELETE ON claim_verdicts FOR EACH ROW EXECUTE FUNCTION claim_verdicts_delete()

CREATE TRIGGER claim_subjects_no_update BEFORE UPDATE ON claim_subjects FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER claim_subjects_no_truncate BEFORE TRUNCATE ON claim_subjects FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION claim_subjects_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM claim_verdicts WHERE claim_verdicts.seq = OLD.verdict) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'claim_subjects is append-only: delete refused';
END
$$

CREATE TRIGGER claim_subjects_no_delete BEFORE DELETE ON claim_subjects FOR EACH ROW EXECUTE FUNCTION claim_subjects_delete()

CREATE TRIGGER decisions_no_update BEFORE UPDATE ON decisions FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER decisions_no_truncate BEFORE TRUNCATE ON decisions FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER decisions_no_delete BEFORE DELETE ON decisions FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER quotes_no_update BEFORE UPDATE ON quotes FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER quotes_no_truncate BEFORE TRUNCATE ON quotes FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER quotes_no_delete BEFORE DELETE ON quotes FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER incidents_no_update BEFORE UPDATE ON incidents FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER incidents_no_truncate BEFORE TRUNCATE ON incidents FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER incidents_no_delete BEFORE DELETE ON incidents FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER seals_no_update BEFORE UPDATE ON seals FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER seals_no_truncate BEFORE TRUNCATE ON seals FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER seals_no_delete BEFORE DELETE ON seals FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER erased_no_update BEFORE UPDATE ON erased FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER erased_no_truncate BEFORE TRUNCATE ON erased FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER erased_no_delete BEFORE DELETE ON erased FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER trusted_keys_no_update BEFORE UPDATE ON trusted_keys FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER trusted_keys_no_truncate BEFORE TRUNCATE ON trusted_keys FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER trusted_keys_no_delete BEFORE DELETE ON trusted_keys FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER envelopes_no_update BEFORE UPDATE ON envelopes FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER envelopes_no_truncate BEFORE TRUNCATE ON envelopes FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER envelopes_no_delete BEFORE DELETE ON envelopes FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER tokens_no_update BEFORE UPDATE ON tokens FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER tokens_no_truncate BEFORE TRUNCATE ON tokens FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER tokens_no_delete BEFORE DELETE ON tokens FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER receipts_no_truncate BEFORE TRUNCATE ON receipts FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION receipts_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.id) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'receipts is append-only: delete refused';
END
$$

CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts FOR EACH ROW EXECUTE FUNCTION receipts_delete()

CREATE TRIGGER documents_no_update BEFORE UPDATE ON documents FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER documents_no_truncate BEFORE TRUNCATE ON documents FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION documents_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'documents is append-only: delete refused';
END
$$

CREATE TRIGGER documents_no_delete BEFORE DELETE ON documents FOR EACH ROW EXECUTE FUNCTION documents_delete()

CREATE TRIGGER verdicts_no_update BEFORE UPDATE ON verdicts FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER verdicts_no_truncate BEFORE TRUNCATE ON verdicts FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION verdicts_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt JOIN subjects ON subjects.receipt = receipts.seq WHERE subjects.verdict = OLD.seq) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'verdicts is append-only: delete refused';
END
$$

CREATE TRIGGER verdicts_no_delete BEFORE DELETE ON verdicts FOR EACH ROW EXECUTE FUNCTION verdicts_delete()

CREATE TRIGGER subjects_no_update BEFORE UPDATE ON subjects FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER subjects_no_truncate BEFORE TRUNCATE ON subjects FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION subjects_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM verdicts WHERE verdicts.seq = OLD.verdict) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'subjects is append-only: delete refused';
END
$$

CREATE TRIGGER subjects_no_delete BEFORE DELETE ON subjects FOR EACH ROW EXECUTE FUNCTION subjects_delete()

CREATE TRIGGER supersessions_no_update BEFORE UPDATE ON supersessions FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER supersessions_no_truncate BEFORE TRUNCATE ON supersessions FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION supersessions_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges WHERE purges.receipt = OLD.successor) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'supersessions is append-only: delete refused';
END
$$

CREATE TRIGGER supersessions_no_delete BEFORE DELETE ON supersessions FOR EACH ROW EXECUTE FUNCTION supersessions_delete()

CREATE TRIGGER pins_no_update BEFORE UPDATE ON pins FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER pins_no_truncate BEFORE TRUNCATE ON pins FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER pins_no_delete BEFORE DELETE ON pins FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER purges_no_update BEFORE UPDATE ON purges FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER purges_no_truncate BEFORE TRUNCATE ON purges FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER purges_no_delete BEFORE DELETE ON purges FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER stores_no_update BEFORE UPDATE ON stores FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER stores_no_truncate BEFORE TRUNCATE ON stores FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER stores_no_delete BEFORE DELETE ON stores FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

ALTER TABLE claim_verdicts ALTER COLUMN body SET STORAGE EXTERNAL

ALTER TABLE documents ALTER COLUMN body SET STORAGE EXTERNAL

ALTER TABLE verdicts ALTER COLUMN body SET STORAGE EXTERNAL
