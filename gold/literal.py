"""Texts in Spark's SQL."""


def quoted(text: str) -> str:
    """A string literal that means the text."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
