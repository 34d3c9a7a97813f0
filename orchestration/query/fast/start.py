"""A quicker start for a process that only asks."""

import sys
from collections.abc import Collection, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

LEFT_OUT = ("pandas", "numpy")


class Without:
    """As if these modules were not installed."""

    def __init__(self, modules: Collection[str]) -> None:
        """Nothing is left out before it is asked."""
        self._modules = modules

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """No other module is found here either, so the search goes on."""
        if fullname in self._modules:
            raise ModuleNotFoundError(f"{fullname} is left out of this process", name=fullname)
        return None


def without_unneeded(*more: str) -> None:
    """Leave pandas, numpy and `more` out of this process for good: pyarrow takes 0.2 to 0.3 s to import each, and none is needed."""
    left_out = {*LEFT_OUT, *more}
    if not left_out & sys.modules.keys():
        sys.meta_path.insert(0, Without(left_out))
