"""Splits a text into statements at semicolons outside of strings, names in backticks and comments."""

from orchestration.serving.sql.shell_words import words


def statements(text: str) -> list[str]:
    """Each statement, stripped and without its semicolon; comments alone are no statement."""
    complete, rest = split(text)
    return [*complete, *([rest.strip()] if _has_content(rest) else [])]


def split(text: str) -> tuple[list[str], str]:
    """Statements that end in a semicolon, and the text after the last one, which may be the beginning of another."""
    complete, start = [], 0
    for word in words(text):
        if word.kind == "other" and word.text == ";":
            statement = text[start : word.at]
            if _has_content(statement):
                complete.append(statement.strip())
            start = word.at + 1
    return complete, text[start:]


def _has_content(text: str) -> bool:
    return any(word.kind not in {"space", "comment"} for word in words(text))
