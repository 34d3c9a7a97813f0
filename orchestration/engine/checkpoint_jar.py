"""The class by which Spark writes checkpoints in an object store: compiled once on a machine, by the Scala compiler that pyspark ships.

Spark's own classes for it write a draft and copy it over whatever is there by then, or take an error of the last request for none.
"""

import hashlib
import subprocess
import sys
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from orchestration.engine.jars import ivy, sole_fetcher
from orchestration.engine.java import cache, java_command
from orchestration.errors import TidemarkError

SOURCE = files("orchestration.engine") / "ConditionalCheckpoints.scala"
CLASS = "tidemark.ConditionalCheckpoints"


def checkpoint_jar() -> Path:
    """Return the jar; TidemarkError where it is not there and cannot be made."""
    digest = hashlib.sha256(SOURCE.read_bytes() + version("pyspark").encode()).hexdigest()
    jar = cache() / "jars" / f"tidemark-checkpoints-{digest[:12]}.jar"
    if not jar.exists():
        print(f"tidemark: compiling {SOURCE.name} for checkpoints in a store (once, about 5 s) ...", file=sys.stderr, flush=True)
        with sole_fetcher() as scratch:
            (scratch / SOURCE.name).write_bytes(SOURCE.read_bytes())
            _compile(scratch / SOURCE.name, scratch / jar.name)
            jar.parent.mkdir(parents=True, exist_ok=True)
            (scratch / jar.name).replace(jar)
    return jar


def _compile(source: Path, jar: Path) -> None:
    of_pyspark = str(ivy().with_name("*"))
    command = [java_command(), "-cp", of_pyspark, "scala.tools.nsc.Main", "-classpath", of_pyspark, "-d", str(jar), str(source)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if answer.returncode or not jar.exists():
        raise TidemarkError(f"{source.name} could not be compiled: {(answer.stdout + answer.stderr)[-1000:]}")
