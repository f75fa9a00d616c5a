"""Signatures: Ed25519 keys, DSSE envelopes, in-toto statements, and the signed notes of transparency logs."""
