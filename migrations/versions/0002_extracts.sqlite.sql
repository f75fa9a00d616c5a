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

CREATE TRIGGER extracts_no_update BEFORE UPDATE ON extracts BEGIN SELECT RAISE(ABORT, 'extracts is append-only: update refused'); END

CREATE TRIGGER extracts_no_delete BEFORE DELETE ON extracts WHEN NOT (EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt)) BEGIN SELECT RAISE(ABORT, 'extracts is append-only: delete refused'); END

CREATE TRIGGER extracts_no_replace BEFORE INSERT ON extracts WHEN EXISTS (SELECT 1 FROM extracts WHERE receipt = NEW.receipt AND digest = NEW.digest AND kind = NEW.kind) BEGIN SELECT RAISE(ABORT, 'extracts is append-only: replace refused'); END
