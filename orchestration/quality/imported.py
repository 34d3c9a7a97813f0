"""Great Expectations as a module: it takes two seconds to import, and three with all that it imports and nobody here uses."""

import logging
import os
import sys
import warnings
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, cast

UNUSED = ("pyspark.sql.connect.dataframe", "pyspark.sql.connect.session", "pyspark.ml.feature")
"""What it would use of Spark, were it asked to.

The first two end a program without a file (a notebook, `python -c`) with exit code 0, which they take for a doctest; the last takes
half a second.
"""
LATER = ("altair", "scipy.stats")
"""What three of its expectations use, and takes a second: imported when one of them asks for it."""


class _Later(ModuleType):
    """Stands for a module. LazyLoader of Python 3.11 would import it at the import statement."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks at all modules (inspect does) asks for these, and wants nothing of this one
            raise AttributeError(name)
        return getattr(import_module(self.__name__), name)


@cache
def great_expectations() -> Any:
    """The module; it reports its use to its maker unless this is said before it is imported."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    known = cast(dict[str, ModuleType | None], sys.modules)
    stand_ins: dict[str, ModuleType | None] = {name: None for name in UNUSED if name not in known}  # as if they were not installed
    stand_ins |= {name: _Later(name) for name in LATER if name not in known}
    known.update(stand_ins)
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of modules that it imports; not ours to mend
            import great_expectations
    finally:
        for name in stand_ins:
            del known[name]
    # It logs every expectation that it cannot evaluate, with a trace; the outcome says so too.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    return great_expectations
