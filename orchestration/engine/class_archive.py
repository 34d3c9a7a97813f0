"""A class-data archive: the classes of Spark and Delta as the JVM left them after a small run, mapped into memory at the next start.

Made once on a machine by `make install` (orchestration/supervisor/first_run.py). The JVM checks that the archive fits its own version and
every jar, and does without it otherwise; so does Tidemark where there is none.
"""

import hashlib
import os
from importlib.util import find_spec
from pathlib import Path

from orchestration.engine.jars import cache

MAKING = "TIDEMARK_CLASS_ARCHIVE"
"""Names the file that the JVM of this process is to leave its classes in."""
QUIET = "-Xshare:auto -Xlog:cds=off -Xlog:cds+dynamic=off -Xlog:class+path=off"


def archive() -> Path:
    """Where the archive of this installation is, whether it exists or not. The JVM takes none that was made with jars elsewhere."""
    pyspark = find_spec("pyspark")
    installation = str(pyspark.origin if pyspark else None)
    return cache() / f"classes-{hashlib.sha256(installation.encode()).hexdigest()[:16]}.jsa"


def class_archive_option() -> str:
    """What to tell the JVM: to leave an archive at its end, to use the one there is, or nothing."""
    if made := os.environ.get(MAKING):
        return f"{QUIET} -XX:ArchiveClassesAtExit={made}"
    return f"{QUIET} -XX:SharedArchiveFile={archive()}" if archive().exists() else ""
