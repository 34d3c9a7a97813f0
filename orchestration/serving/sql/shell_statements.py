"""Statements of a text: what stands between semicolons, outside of strings, names in backticks and comments."""

from orchestration.query.fast.tokens import tokens


def statements(text: str) -> list[str]:
    """Each without its semicolon and without what is around it; nothing for what is only comments."""
    found, rest = split(text)
    return [*found, *([rest.strip()] if _says_something(rest) else [])]


def split(text: str) -> tuple[list[str], str]:
    """Statements that a semicolon ends, and the text behind the last one, which may be the beginning of another."""
    found, start = [], 0
    for token in tokens(text):
        if token.kind == "sign" and token.text == ";":
            statement = text[start : token.at]
            if _says_something(statement):
                found.append(statement.strip())
            start = token.at + 1
    return found, text[start:]


def _says_something(text: str) -> bool:
    return any(token.kind not in {"space", "comment"} for token in tokens(text))
