"""The suites that Tidemark ships."""

from importlib.resources import files

import yaml

from expectations.suite import Suite, suite
from orchestration.errors import TidemarkError


def packaged() -> list[Suite]:
    """Every suite in package expectations, by name, which is that of its file; raises TidemarkError for a file that is none."""
    texts = sorted((file.name, file.read_text(encoding="utf-8")) for file in files("expectations").iterdir() if file.name.endswith(".yml"))
    try:
        return [suite(name.removesuffix(".yml"), yaml.load(text, yaml.CSafeLoader)) for name, text in texts]
    except ValueError as error:
        raise TidemarkError(f"expectations: {error}; or install Tidemark anew, if nobody has changed its files.") from None
