"""A disk of a lake's own for tests, which can be full: one in memory, which root alone may mount."""

import os
import shutil
import subprocess
from pathlib import Path

BYTES = 3 * 1024**3
"""Taken only where files are."""


class Disk:
    """`is_own`: its size can be changed; without root it is a folder as any other."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.is_own = folder, os.geteuid() == 0
        folder.mkdir()
        if self.is_own:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={BYTES}", "tmpfs", str(folder)], check=True)

    def leave(self, free: int) -> None:
        """So much room, to the next page of memory."""
        for _ in range(10):  # whoever writes meanwhile may take more than it would leave
            try:
                return self._resize(shutil.disk_usage(self.folder).used + free)
            except subprocess.CalledProcessError:
                free += 1024**2
        raise AssertionError("the disk grows faster than it can be made small")

    def restore(self) -> None:
        self._resize(BYTES)

    def close(self) -> None:
        """What it held is gone."""
        if self.is_own:
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)

    def _resize(self, size: int) -> None:
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)
