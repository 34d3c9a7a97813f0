"""Where a secret shows that must show nowhere: in files, tables, texts and the command lines of processes."""

import base64
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.parquet as pq


def forms(secret: str) -> set[bytes]:
    """As it is, in hex, and in base64 whatever stands before it."""
    plain = secret.encode()
    shifted = ((shift, base64.b64encode(b"x" * shift + plain)) for shift in range(3))
    coded = {text[-(-shift * 8 // 6) : (shift + len(plain)) * 8 // 6] for shift, text in shifted}
    return {plain, plain.hex().encode()} | coded


def files_with(secret: str, folder: Path) -> list[str]:
    """Below a folder; of Parquet what it holds, which is compressed, as well."""
    found = []
    for file in sorted(folder.rglob("*")):
        with suppress(FileNotFoundError, IsADirectoryError):
            content = file.read_bytes()
            if content.startswith(b"PAR1"):
                content += "\n".join(map(repr, pq.read_table(file, partitioning=None).to_pylist())).encode()
            found += [str(file.relative_to(folder))] if _is_in(secret, content) else []
    return found


def texts_with(secret: str, texts: Iterable[str | bytes]) -> list[str | bytes]:
    """Those that hold it."""
    return [text for text in texts if _is_in(secret, text if isinstance(text, bytes) else text.encode("utf-8", "replace"))]


@contextmanager
def command_lines() -> Iterator[set[bytes]]:
    """Of all processes that there are at any time meanwhile, but for those shorter than a tenth of a second.

    Not of a server of Postgres: it shows the user that a client has named.
    """
    seen, end = set[bytes](), threading.Event()

    def look() -> None:
        while True:
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):
                    line = process.read_bytes()
                    if not line.startswith(b"postgres: "):
                        seen.add(line)
            if end.wait(0.1):
                return

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        end.set()
        thread.join()


def _is_in(secret: str, content: bytes) -> bool:
    return any(form in content for form in forms(secret))
