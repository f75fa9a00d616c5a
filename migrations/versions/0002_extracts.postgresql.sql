CREATE TABLE extracts (
	receipt BIGINT NOT NULL,
	digest VARCHAR COLLATE "C" NOT NULL,
	kind VARCHAR COLLATE "C" NOT NULL,
	codec VARCHAR COLLATE "C" NOT NULL,
	body BYTEA NOT NULL,
	CONSTRAINT extracts_pkey PRIMARY KEY (receipt, digest, kind),
	CONSTRAINT extracts_receipt_fkey FOREIGN KEY(receipt) REFERENCES receipts (seq)
)

COMMENT ON TABLE extracts IS 'What plugins made of files of evidence when a receipt was submitted with them'

COMMENT ON COLUMN extracts.receipt IS 'The receipt, by its number'

COMMENT ON COLUMN extracts.digest IS 'SHA-256 of the file, as the receipt lists it'

COMMENT ON COLUMN extracts.kind IS 'What it is and its version, such as time-profile-1'

COMMENT ON COLUMN extracts.codec IS 'How body is packed: zlib'

COMMENT ON COLUMN extracts.body IS 'The extract, packed'

CREATE TRIGGER extracts_no_update BEFORE UPDATE ON extracts FOR EACH ROW EXECUTE FUNCTION receipts_refuse()

CREATE TRIGGER extracts_no_truncate BEFORE TRUNCATE ON extracts FOR EACH STATEMENT EXECUTE FUNCTION receipts_refuse()

CREATE FUNCTION extracts_delete() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM purges JOIN receipts ON receipts.id = purges.receipt WHERE receipts.seq = OLD.receipt) THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'extracts is append-only: delete refused';
END
$$

CREATE TRIGGER extracts_no_delete BEFORE DELETE ON extracts FOR EACH ROW EXECUTE FUNCTION extracts_delete()

ALTER TABLE extracts ALTER COLUMN body SET STORAGE EXTERNAL
