"""Protobuf messages to values as JSON has them, by the descriptors of their files. The parser of google.protobuf reads the bytes.

A message is an object, whose members are called as in the .proto file; an enum is the name of its value, and a number where it has none.
What has no presence and is absent is its default; all else that is absent is null. A google.protobuf.Timestamp is a text in ISO 8601, null
beyond the years 1 to 9999. 64-bit numbers are numbers, bytes are base64. A text that is read and is not UTF-8 makes the payload unreadable.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from silver.avro_values import long_at
from silver.numbers import of_single
from silver.records import UnreadableError

BROKEN = (UnreadableError, DecodeError, IndexError)
Convert: TypeAlias = Callable[[Any], Any]
TIMESTAMP, EPOCH = "google.protobuf.Timestamp", datetime(1970, 1, 1, tzinfo=UTC)
YEAR_1, YEAR_10000, SECOND = -62_135_596_800, 253_402_300_800, 1_000_000_000


@cache
def protobuf_reader(texts: Sequence[str], message: str | tuple[int, ...], names: frozenset[str] | None) -> Callable[[bytes], Any]:
    """Return a function that reads payloads of a message of this FileDescriptorSet: by its full name, or by its index path in the last
    file.

    `names`: the members that are read, None for all. The function raises one of BROKEN; this call IndexError if there is no such index.
    """
    descriptor = descriptor_of(texts, message)
    parse, convert = GetMessageClass(descriptor).FromString, _of_message(descriptor, names)
    return lambda payload: convert(parse(payload))


def descriptor_of(texts: Sequence[str], message: str | tuple[int, ...]) -> Descriptor:
    """KeyError where no file declares the name, IndexError where there is no such place."""
    pool, last = _files(texts[0])
    return pool.FindMessageTypeByName(message if isinstance(message, str) else _name_at(last, message))  # type: ignore[no-any-return]


def _name_at(last: FileDescriptorProto, message: tuple[int, ...]) -> str:
    first, *inner = message
    declared = last.message_type[first]
    names = [last.package, declared.name] if last.package else [declared.name]
    for index in inner:
        declared = declared.nested_type[index]
        names.append(declared.name)
    return ".".join(names)


@cache
def _files(text: str) -> tuple[DescriptorPool, FileDescriptorProto]:
    files = FileDescriptorSet.FromString(b64decode(text)).file
    pool = DescriptorPool()
    for file in files:
        pool.Add(file)
    return pool, files[-1]


def _of_message(descriptor: Descriptor, names: frozenset[str] | None = None) -> Convert:
    if descriptor.full_name == TIMESTAMP:
        return _instant
    read = [field for field in descriptor.fields if names is None or field.name in names]
    fields = [(field.name, _of_field(field), not field.has_presence) for field in read]

    def convert(message: Message) -> dict[str, Any]:
        has = message.HasField
        return {name: converted(getattr(message, name)) if is_always or has(name) else None for name, converted, is_always in fields}

    return convert


def _of_field(field: FieldDescriptor) -> Convert:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        of_key, of_value = (_of_one(field.message_type.fields_by_name[name]) for name in ("key", "value"))
        # The parser has them in another order in each process.
        return lambda members: dict(sorted((_name(of_key(key)), of_value(members[key])) for key in members))
    of_one = _of_one(field)
    return (lambda values: [of_one(value) for value in values]) if field.is_repeated else of_one


def _of_one(field: FieldDescriptor) -> Convert:
    if field.message_type is not None:
        made: list[Convert] = []

        def of_message(value: Message) -> Any:
            """Made when the first message of its kind comes, as a kind may hold itself."""
            if not made:
                made.append(_of_message(field.message_type))
            return made[0](value)

        return of_message
    if field.type == FieldDescriptor.TYPE_ENUM:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda number: names.get(number, number)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return lambda content: b64encode(content).decode()
    if field.type == FieldDescriptor.TYPE_STRING:
        return checked
    return of_single if field.type == FieldDescriptor.TYPE_FLOAT else lambda value: value


def checked(value: Any) -> Any:
    """The parser checks no texts of proto2, and hands over those that are none as bytes."""
    if isinstance(value, bytes):
        raise UnreadableError
    return value


def _name(key: str | int | bool) -> str:
    return str(key).lower() if isinstance(key, bool) else str(key)


def _instant(timestamp: Any) -> str | None:
    seconds, nanos = timestamp.seconds, timestamp.nanos
    if not (YEAR_1 <= seconds < YEAR_10000 and 0 <= nanos < SECOND):
        return None
    return f"{(EPOCH + timedelta(seconds=seconds)).isoformat()[:19]}.{nanos:09d}Z"


def in_frame(payload: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """The place of the message that a registry's frame tells behind the id, and where the message begins; UnreadableError for a bad one."""
    count, at = long_at(payload, at)
    places: list[int] = []
    if not 0 <= count <= len(payload) - at:
        raise UnreadableError
    for _ in range(count):
        index, at = long_at(payload, at)
        if index < 0:
            raise UnreadableError
        places.append(index)
    return tuple(places) or (0,), at
