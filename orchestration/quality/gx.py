"""Great Expectations, imported when the first suite is validated or checked: the import takes three seconds of CPU time (measured)."""

import logging
import os
import warnings
from functools import cache
from typing import Any

from orchestration.errors import TidemarkError


@cache
def great_expectations() -> Any:
    """The module, without its usage reports, which an environment variable turns off before the import."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    try:
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # raised in modules that it imports
            import great_expectations
    except SystemExit:
        # It imports pyspark.sql.connect, which takes a program without a file for a doctest and, without grpcio, ends it with exit code 0.
        raise TidemarkError("Great Expectations cannot be imported by `python -c`; put the program in a file, or install grpcio.") from None
    # It logs every expectation that it cannot evaluate, with a trace; the outcome says so too.
    logging.getLogger("great_expectations").setLevel(logging.CRITICAL)
    return great_expectations
