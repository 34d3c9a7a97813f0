"""The jars that Spark needs beside those in pyspark: fetched once, checked against their lock at every start, offline from then on."""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

from orchestration.engine.java import cache, java_command, require_java
from orchestration.errors import TidemarkError
from orchestration.storage.lease import holding

OF_SPARK, OF_S3 = files("conf") / "jars.lock", files("conf") / "jars-s3.lock"
"""The locks: what each lake needs, and what one on an object store needs besides."""
LINE = re.compile(r"^(?P<group>[^#:\s]+):(?P<name>[^:\s]+):(?P<version>[^:\s]+) sha256:(?P<sha256>[0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Jar:
    """One line of a lock; `sha256` is in lower-case hex."""

    group: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


def fetched(lock: Traversable | None = None) -> list[Path]:
    """All jars of a lock (None: conf/jars.lock), with the right bytes; what is missing is fetched. TidemarkError where that fails."""
    folder = cache() / "jars"
    jars = locked((lock or OF_SPARK).read_text())
    if missing := absent(jars, folder):
        with sole_fetcher() as scratch:
            # Looked at again: another process may have fetched them while this one waited.
            if missing := absent(missing, folder):
                fetch(missing, folder, scratch)
    return [folder / jar.file_name for jar in jars]


def missing_jars(lock: Traversable | None = None) -> list[Jar]:
    """List the jars of a lock (None: conf/jars.lock) that the first run will fetch."""
    return absent(locked((lock or OF_SPARK).read_text()), cache() / "jars")


def locked(text: str) -> list[Jar]:
    """The jars of a lock list: one a line, `group:name:version sha256:digest`."""
    return [Jar(**line.groupdict()) for line in LINE.finditer(text)]


def absent(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    """List the jars that are not in the folder. A file with other bytes than the lock names is deleted, and so absent."""
    missing = [jar for jar in jars if not (folder / jar.file_name).is_file()]
    wrong = [jar for jar in jars if jar not in missing and not is_right(jar, folder / jar.file_name)]
    for jar in wrong:
        (folder / jar.file_name).unlink(missing_ok=True)
        print(f"tidemark: {folder / jar.file_name} is not the file that the lock of the jars names: deleted", file=sys.stderr)
    return missing + wrong


def is_right(jar: Jar, path: Path) -> bool:
    """Whether the file has the bytes that the lock names."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256


def fetch(jars: Sequence[Jar], folder: Path, scratch: Path) -> None:
    """Download into scratch, check, then move into the folder; whoever is killed on the way leaves no half jar there."""
    print(f"tidemark: fetching {len(jars)} jars into {folder} (once, about 10 s) ...", file=sys.stderr, flush=True)
    trouble = retrieve(jars, scratch)
    folder.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        path = scratch / "out" / jar.file_name
        if not path.is_file():
            raise TidemarkError(
                f"{jar.group}:{jar.name}:{jar.version} could not be fetched ({trouble}): check the network or its proxy and try again, "
                f"or copy the files that conf/jars*.lock name into {folder}."
            )
        if not is_right(jar, path):
            path.unlink()
            raise TidemarkError(
                f"{jar.file_name} was fetched, but its bytes are not those that its lock names: deleted; the repository or a proxy "
                f"on the way altered it, so try another network, or copy the right file into {folder}."
            )
        path.replace(folder / jar.file_name)


def retrieve(jars: Sequence[Jar], scratch: Path) -> str:
    """Let the Ivy that pyspark ships put the jars into scratch/out; what it said last, for the case that one is not there."""
    (scratch / "ivy.xml").write_text(ivy_xml(jars))
    # A cache of its own: a half-filled ~/.ivy2 of other tools makes Ivy fail.
    options = ["-ivy", f"{scratch}/ivy.xml", "-cache", f"{scratch}/ivy", "-retrieve", f"{scratch}/out/[artifact]-[revision].[ext]"]
    command = [java_command(), "-jar", str(ivy()), *options]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    troubles = [line.strip() for line in (answer.stdout + answer.stderr).splitlines() if "::" not in line and "rror" in line]
    return troubles[0] if troubles else f"Ivy ended with {answer.returncode}"


def ivy_xml(jars: Sequence[Jar]) -> str:
    """An Ivy module that depends on these jars; `master` is the jar itself, without sources, javadoc and what it depends on."""
    dependencies = "\n".join(
        f'    <dependency org="{jar.group}" name="{jar.name}" rev="{jar.version}" transitive="false" conf="default->master"/>'
        for jar in jars
    )
    return f"""<ivy-module version="2.0">
  <info organisation="tidemark" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def ivy() -> Path:
    """The Ivy jar among those of pyspark, found without importing pyspark."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise TidemarkError("pyspark is not installed: run `make install`.")
    return next((Path(spec.origin).parent / "jars").glob("ivy-*.jar"))


@contextmanager
def sole_fetcher() -> Iterator[Path]:
    """An empty scratch folder that this process alone holds; it lies in the cache, so that a jar moves out of it in one step."""
    scratch = cache() / "fetching"
    with holding(cache() / "fetching.lock"):
        shutil.rmtree(scratch, ignore_errors=True)  # of one that was killed
        scratch.mkdir()
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    try:
        require_java()
        fetched()
    except TidemarkError as error:
        sys.exit(f"tidemark: {error}")
