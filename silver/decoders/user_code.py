"""A decoder of the user's: a function of a module beside conf, whose source is part of how payloads are read.

Workers, a replay and `verify` get the source with the settings, so all of them run the same function, whatever the file says by now.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_loader
from inspect import signature
from types import CodeType, ModuleType
from typing import Any

import msgspec


class _Source(InspectLoader):
    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        return self._source

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self._source, f"{fullname}.py")


@lru_cache(maxsize=64)
def module_of(name: str, source: str) -> ModuleType:
    """The module that a source makes; any error of it."""
    spec = spec_from_loader(name, _Source(source), origin=f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function_in(code: Mapping[str, str], name: str) -> Callable[..., list[Any]]:
    """The function that `module:function` names. What it raises is why a payload is unreadable."""
    module, _, function = name.partition(":")
    decode: Callable[..., Any] = getattr(module_of(module, code[module]), function)

    def decoder(*content: Any, **arguments: Any) -> list[Any]:
        made = decode(*content, **arguments)
        return [_plain(one) for one in ([made] if isinstance(made, bytes | dict) else made)]

    decoder.__signature__ = signature(decode)  # type: ignore[attr-defined]
    return decoder


def _plain(content: Any) -> Any:
    """Plain values: an instant is a text in ISO 8601, a Decimal a text."""
    return content if isinstance(content, bytes) else msgspec.to_builtins(content, str_keys=True)
