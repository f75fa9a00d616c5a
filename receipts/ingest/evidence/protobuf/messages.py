"""Protobuf messages declared here by field name, number and type, for files whose makers are not installed.

A declaration holds the fields that are read; what else a message has is skipped as unknown by the parser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Message name → fields: name, number, type. A type is a scalar's (`int64`), or another message's name; `[]` behind
# it means repeated.
Declarations = Mapping[str, Sequence[tuple[str, int, str]]]


def declare(package: str, messages: Declarations) -> dict[str, Any]:
    """Classes of the declared messages by name, in a pool of their own.

    Importing protobuf takes tens of milliseconds, so it waits until a file needs it.
    """
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for field, number, kind in fields:
            repeated = kind.endswith("[]")
            base = kind.removesuffix("[]")
            entry = message.field.add(name=field, number=number)
            entry.label = kinds.LABEL_REPEATED if repeated else kinds.LABEL_OPTIONAL
            if base in messages:
                entry.type = kinds.TYPE_MESSAGE
                entry.type_name = f".{package}.{base}"
            else:
                entry.type = kinds.Type.Value(f"TYPE_{base.upper()}")
                if repeated and base not in ("string", "bytes"):
                    # Packed or not: the parser takes both, whichever a declaration says.
                    entry.options.packed = True
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}")) for name in messages}


def decode_error() -> type[Exception]:
    """What parsing a broken message raises."""
    from google.protobuf.message import DecodeError

    return DecodeError
