"""The Java that Spark will use, looked at before Spark starts: its own message about a wrong one is two pages long.

And its class-data archive: the classes of Spark and Delta as the JVM left them after a small run, mapped into memory at the next start.
`make install` makes it once for an installation (supervisor/first_run.py). The JVM checks that the archive fits its own version and every
jar, and does without it otherwise; so does Tidemark where there is none.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import psutil

from orchestration.errors import TidemarkError

OLDEST = 17
WAY_OUT = (
    f"install Java {OLDEST}, JDK or JRE (Debian and Ubuntu: `apt-get install openjdk-17-jre-headless`, macOS: `brew install openjdk@17`), "
    "or point JAVA_HOME to one"
)
MAKING = "TIDEMARK_CLASS_ARCHIVE"
"""Names the file that the JVM of this process is to leave its classes in."""
LEAST_HEAP, MOST_HEAP = 2 << 30, 6 << 30
MEMORY_LIMIT = Path("/sys/fs/cgroup/memory.max")
"""The limit of a container, in bytes; it says `max` where there is none."""
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def require_java() -> None:
    """Raise TidemarkError, with what to install, unless Spark will find a Java that can run it."""
    command = java_command()
    # Spark needs this module, which a JRE cut down by jlink may lack; naming it here also makes Java 8 and other strangers fail.
    answer = subprocess.run(
        [command, "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # a signal to the group of this process ends the run, and not this look
    )
    if answer.returncode:
        said = answer.stderr.strip() or f"exit code {answer.returncode}"
        raise TidemarkError(f"{command} cannot run Spark ({said.splitlines()[-1]}): {WAY_OUT}.")
    if (version := major_version(answer.stderr)) < OLDEST:
        raise TidemarkError(f"{command} is Java {version}, and Spark needs {OLDEST} or later: {WAY_OUT}.")


def java_command() -> str:
    """The path of `java`, found as Spark's own start script finds it: JAVA_HOME first, then the PATH."""
    if home := os.environ.get("JAVA_HOME"):
        command = Path(home) / "bin" / "java"
        if not os.access(command, os.X_OK):
            raise TidemarkError(f"JAVA_HOME is {home}, where there is no bin/java: {WAY_OUT}.")
        return str(command)
    if command_on_path := shutil.which("java"):
        return command_on_path
    raise TidemarkError(f"Java is not installed, and Spark runs on it: {WAY_OUT}.")


def heap_of(driver_memory: str | None) -> str:
    """Return the heap of the Spark process: as conf has it, else a quarter of the memory of this machine or container, within limits."""
    if driver_memory is not None:
        return driver_memory
    return f"{min(max(machine_memory() // 4, LEAST_HEAP), MOST_HEAP) >> 20}m"


def machine_memory() -> int:
    """Return the bytes of memory of this machine or container."""

    limit = MEMORY_LIMIT.read_text().strip() if MEMORY_LIMIT.exists() else "max"
    memory: int = psutil.virtual_memory().total
    return min(memory, int(limit)) if limit.isdigit() else memory


def major_version(text: str) -> int:
    """Read the major version from what `java -version` prints: 17 for `"17.0.15"`, 8 for `"1.8.0_392"`, 0 if it names none."""
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(version[1]) if version else 0


def cache() -> Path:
    """The folder that outlives every clone and every lake: $TIDEMARK_CACHE, by default ~/.cache/tidemark."""
    return Path(os.environ.get("TIDEMARK_CACHE") or Path.home() / ".cache" / "tidemark")


def archive() -> Path:
    """Return the path of the class archive: in the installation, since the JVM takes none that was made with jars elsewhere."""
    return Path(sys.prefix) / "classes.jsa"


def class_archive_option() -> str:
    """Return the option for the JVM: to leave an archive at its end, to use the one there is, or none."""
    if made := os.environ.get(MAKING):
        return f"{QUIET} -XX:ArchiveClassesAtExit={made}"
    return f"{QUIET} -XX:SharedArchiveFile={archive()}" if archive().exists() else ""
