"""Protobuf messages by the wire format: every field of a message by its number, as the descriptors of its file declare it.

A message is an object, an enum the name of its value or else its number, a Timestamp a text, bytes are base64. What is absent is null where
it has presence, else its default. Fields of another wire type are skipped, as unknown ones are. Of what comes twice the last counts;
messages are merged.
"""

import struct
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import pyarrow as pa
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.empty_pb2 import Empty

F = FieldDescriptor
VARINT, FIXED64, SIZED, GROUP, GROUP_END, FIXED32 = range(6)
FIXED = {
    **dict(zip((F.TYPE_DOUBLE, F.TYPE_FIXED64, F.TYPE_SFIXED64), ("<d", "<Q", "<q"), strict=True)),
    **dict(zip((F.TYPE_FLOAT, F.TYPE_FIXED32, F.TYPE_SFIXED32), ("<f", "<I", "<i"), strict=True)),
}
DEEPEST = 100
BROKEN = (ValueError, IndexError, struct.error)


class Message:
    """Fields by number as they came: a value, a list of them, or a message that is not at its end yet."""

    def __init__(self, descriptor: Descriptor) -> None:
        self.descriptor, self.values, self.has_unknown = descriptor, dict[int, Any](), False


@cache
def files_of(text: str) -> tuple[DescriptorPool, FileDescriptorProto]:
    """Return all files of a FileDescriptorSet in base64, and the last."""
    pool, files = DescriptorPool(), FileDescriptorSet.FromString(b64decode(text)).file
    for file in files:
        pool.Add(file)
    return pool, files[-1]


def message_at(texts: Sequence[str], indexes: Sequence[int]) -> str:
    """The full name of the message at these indexes of the last file, from the outermost in; IndexError where none is."""
    _, file = files_of(texts[0])
    names, declared = [file.package] if file.package else [], file.message_type
    for index in indexes:
        if index < 0:
            raise IndexError
        names.append(declared[index].name)
        declared = declared[index].nested_type
    return ".".join(names)


def protobuf_reader(texts: Sequence[str], message: str, names: Collection[str] | None) -> Callable[[bytes], dict[str, Any]]:
    """Return a function that reads these members of payloads of a message, None: all; it raises one of BROKEN."""
    return reader_of(files_of(texts[0])[0].FindMessageTypeByName(message), names)


def reader_of(descriptor: Descriptor, names: Collection[str] | None = None) -> Callable[[bytes], dict[str, Any]]:
    """The same by a descriptor; None: all members."""
    fields = [field for field in descriptor.fields if names is None or field.name in names]

    def read(payload: bytes) -> dict[str, Any]:
        message = Message(descriptor)
        _merge(message, payload, 0, 0)
        return {field.name: _member(field, message.values) for field in fields}

    return read


def _merge(message: Message, data: bytes, at: int, depth: int, group: int = 0) -> int:
    """Fields of a message to its end: that of the bytes, or of its group."""
    if depth > DEEPEST:
        raise ValueError("too deep")
    while at < len(data):
        tag, at = _varint(data, at, 5, 1 << 32)
        number, wire = tag >> 3, tag & 7
        if number == 0 or (wire == GROUP_END and number != group):
            raise ValueError("no field")
        if wire == GROUP_END:
            return at
        at = _take(message, tag, data, at, depth)
    if group:
        raise ValueError("a group without an end")
    return at


def _take(message: Message, tag: int, data: bytes, at: int, depth: int) -> int:
    number, wire = tag >> 3, tag & 7
    field = message.descriptor.fields_by_number.get(number)
    if wire == GROUP:
        is_known = field is not None and field.type == F.TYPE_GROUP
        message.has_unknown |= not is_known
        return _merge(_begin(message, field) if is_known else Message(Empty.DESCRIPTOR), data, at, depth + 1, number)
    content, at = _content(wire, data, at)
    is_packed = field is not None and wire == SIZED and field.is_repeated and _wire_of(field) not in (SIZED, GROUP)
    if field is None or not (is_packed or wire == _wire_of(field)):
        message.has_unknown = True
    elif field.message_type is not None:
        _take_message(message, field, content, depth)
    else:
        for value in _packed(field, content) if is_packed else [_value(field, content)]:
            _put(message, field, value)
    return at


def _take_message(message: Message, field: FieldDescriptor, content: bytes, depth: int) -> None:
    is_map = field.message_type.GetOptions().map_entry
    inner = Message(field.message_type) if is_map else _begin(message, field)
    _merge(inner, content, 0, depth + 1)
    if is_map and not inner.has_unknown:  # google's parser takes an entry with anything unknown in it for unknown
        key, value = (field.message_type.fields_by_number[number] for number in (1, 2))
        entry = inner.values.get(2, Message(value.message_type) if value.message_type else _default(value))
        message.values.setdefault(field.number, {})[inner.values.get(1, _default(key))] = entry


def _begin(message: Message, field: FieldDescriptor) -> Message:
    """The message that a field is to hold: a further one, or the one that is there."""
    there = None if field.is_repeated else message.values.get(field.number)
    inner = there or Message(field.message_type)
    _put(message, field, inner)
    return inner


def _put(message: Message, field: FieldDescriptor, value: Any) -> None:
    if field.enum_type is not None and field.enum_type.is_closed and value not in field.enum_type.values_by_number:
        message.has_unknown = True
        return
    if field.is_repeated:
        message.values.setdefault(field.number, []).append(value)
        return
    if field.containing_oneof is not None:
        for other in field.containing_oneof.fields:
            message.values.pop(other.number, None)
    message.values[field.number] = value


def _content(wire: int, data: bytes, at: int) -> tuple[Any, int]:
    if wire == VARINT:
        return _varint(data, at, 10, 1 << 64)
    if wire == SIZED:
        size, at = _varint(data, at, 10, 1 << 31)
    else:
        size = {FIXED64: 8, FIXED32: 4}[wire] if wire in (FIXED64, FIXED32) else -1
    if size < 0 or at + size > len(data):
        raise ValueError("cut off")
    return data[at : at + size], at + size


def _varint(data: bytes, at: int, most_bytes: int, limit: int) -> tuple[int, int]:
    value = 0
    for n in range(most_bytes):
        byte = data[at + n]
        value |= (byte & 0x7F) << (7 * n)
        if byte < 0x80:
            if (value := value & 0xFFFF_FFFF_FFFF_FFFF) >= limit:
                break
            return value, at + n + 1
    raise ValueError("a number is too long")


def _wire_of(field: FieldDescriptor) -> int:
    if field.type == F.TYPE_GROUP:
        return GROUP
    if field.type in (F.TYPE_STRING, F.TYPE_BYTES, F.TYPE_MESSAGE):
        return SIZED
    return {"d": FIXED64, "Q": FIXED64, "q": FIXED64}.get(FIXED[field.type][1], FIXED32) if field.type in FIXED else VARINT


def with_fewest_digits(single: float) -> float:
    """Return the number that people read in a float of 32 bits: Arrow writes it in the fewest digits that give the same float."""
    return float(pa.scalar(single, pa.float32()).cast(pa.string()).as_py())


def _packed(field: FieldDescriptor, content: bytes) -> list[Any]:
    wire, at, values = _wire_of(field), 0, []
    while at < len(content):
        one, at = _content(wire, content, at)
        values.append(_value(field, one))
    return values


def _value(field: FieldDescriptor, content: Any) -> Any:
    if field.type in FIXED:
        number = struct.unpack(FIXED[field.type], content)[0]
        return with_fewest_digits(number) if field.type == F.TYPE_FLOAT else number
    if field.type == F.TYPE_STRING:
        return content.decode() if _is_checked(field.containing_type.file) else content
    if field.type == F.TYPE_BYTES:
        return content
    if field.type == F.TYPE_BOOL:
        return content != 0
    bits = 32 if field.type in (F.TYPE_INT32, F.TYPE_UINT32, F.TYPE_SINT32, F.TYPE_ENUM) else 64
    value = content & ((1 << bits) - 1)
    if field.type in (F.TYPE_SINT32, F.TYPE_SINT64):
        return (value >> 1) ^ -(value & 1)
    is_signed = field.type not in (F.TYPE_UINT32, F.TYPE_UINT64)
    return value - (1 << bits) if is_signed and value >> (bits - 1) else value


@cache
def _is_checked(file: FileDescriptor) -> bool:
    """Whether each text has to be UTF-8 when it comes; in proto2 those that count have to be."""
    declared = FileDescriptorProto()
    file.CopyToProto(declared)
    return declared.syntax not in ("", "proto2")


def _default(field: FieldDescriptor) -> Any:
    return b"" if field.type == F.TYPE_STRING else field.default_value


def _object(message: Message) -> Any:
    values = {field.name: _member(field, message.values) for field in message.descriptor.fields}
    if message.descriptor.full_name == "google.protobuf.Timestamp":
        return _instant(values["seconds"], values["nanos"])
    return values


def _member(field: FieldDescriptor, values: dict[int, Any]) -> Any:
    there = values.get(field.number)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, value = (field.message_type.fields_by_number[number] for number in (1, 2))
        by_name = {_key(_plain(key, name)): _plain(value, content) for name, content in (there or {}).items()}
        return {name: by_name[name] for name in sorted(by_name)}
    if field.is_repeated:
        return [_plain(field, value) for value in there or ()]
    if there is None:
        return None if field.has_presence else _plain(field, _default(field))
    return _plain(field, there)


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Message):
        return _object(value)
    if field.enum_type is not None:
        return next((one.name for one in field.enum_type.values if one.number == value), value)
    if field.type == F.TYPE_BYTES:
        return b64encode(value).decode()
    return value.decode() if isinstance(value, bytes) else value


def _key(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _instant(seconds: int, nanos: int) -> str | None:
    try:
        second = datetime.fromisoformat("1970-01-01T00:00:00") + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{second.isoformat()}.{nanos:09d}Z" if 0 <= nanos < 1_000_000_000 else None
