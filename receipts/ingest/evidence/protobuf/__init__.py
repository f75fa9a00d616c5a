"""Protobuf messages and record files, without the programs that make them."""
