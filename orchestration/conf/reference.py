"""x"""


def reference() -> str:
    return ""
