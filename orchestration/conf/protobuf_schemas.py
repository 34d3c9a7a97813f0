"""Schemas of Protobuf: .proto files by protoc, or what protoc made of them, to a FileDescriptorSet; and the fields of a message."""

import subprocess
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from protoc import PROTOC_EXE, PROTOC_INCLUDE_DIR  # type: ignore[import-untyped]

from expectations.wording import hint, quoted
from orchestration.conf.schema_members import Member, SchemaError

TIMESTAMP = "google.protobuf.Timestamp"
PATIENCE_SECONDS = 30


def of_file(file: Path, content: bytes) -> str:
    """A FileDescriptorSet in base64, of a .proto file, whose imports lie below its folder, or of one that protoc wrote."""
    made = _compiled(file.parent, file.name) if file.suffix == ".proto" else content
    _pool(made)
    return b64encode(made).decode()


def of_texts(texts: Mapping[str, str], main: str) -> str:
    """The same of .proto files by the names by which they import each other."""
    with TemporaryDirectory(prefix="tidemark-") as folder:
        root = Path(folder).resolve()
        for name, text in texts.items():
            file = (root / name).resolve()
            if not file.is_relative_to(root):
                raise SchemaError(f"imports {quoted(name)}, which lies outside")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        return of_file(root / main, b"")


def protobuf_members(text: str, message: str) -> Member:
    """The fields of a message; SchemaError where no file declares it."""
    files = _files(b64decode(text))
    pool = _pool(b64decode(text))
    try:
        return _object(pool.FindMessageTypeByName(message))
    except KeyError:
        names = [".".join(filter(None, (file.package, declared.name))) for file in files.file for declared in file.message_type]
        raise SchemaError(
            f"is {quoted(message)}, which the schema does not declare; {hint(message, names, 'it has ' + ', '.join(names))}"
        ) from None


def _compiled(folder: Path, name: str) -> bytes:
    arguments = [PROTOC_EXE, f"-I{folder}", f"-I{PROTOC_INCLUDE_DIR}", "--include_imports", "--descriptor_set_out=/dev/stdout", name]
    try:
        done = subprocess.run(arguments, cwd=folder, capture_output=True, timeout=PATIENCE_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SchemaError(f"could not be compiled by protoc ({error})") from None
    if done.returncode:
        reasons = done.stderr.decode(errors="replace").strip().splitlines() or ["no reason given"]
        raise SchemaError(f"is not accepted by protoc ({reasons[0].removeprefix(f'{folder}/')}); correct it")
    return done.stdout


def _files(content: bytes) -> FileDescriptorSet:
    try:
        files = FileDescriptorSet.FromString(content)
    except DecodeError:
        files = FileDescriptorSet()
    if not files.file:
        raise SchemaError("is no FileDescriptorSet; name a .proto file, or what protoc --include_imports --descriptor_set_out makes of it")
    return files


def _pool(content: bytes) -> DescriptorPool:
    pool = DescriptorPool()
    try:
        for file in _files(content).file:
            pool.Add(file)
    except TypeError as error:
        raise SchemaError(
            f"is no whole FileDescriptorSet ({' '.join(str(error).split())}); make it with protoc --include_imports"
        ) from None
    return pool


def _object(descriptor: Descriptor) -> Member:
    if descriptor.full_name == TIMESTAMP:
        return Member("value", logical=TIMESTAMP)
    return Member("object", lambda: {field.name: _member(field) for field in descriptor.fields})


def _member(field: FieldDescriptor) -> Member:
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        return Member("map", lambda: {"": _member(field.message_type.fields_by_name["value"])})
    inner = Member("value") if field.message_type is None else _object(field.message_type)
    return Member("list", inner.members) if field.is_repeated else inner
