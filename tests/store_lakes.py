"""A lake in an object store, by conf alone: a copy of a conf that says another place, and nothing else."""

import re
import shutil
from pathlib import Path

from tests.object_store import ACCESS_KEY, SECRET_KEY

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {"STORE_KEY": ACCESS_KEY, "STORE_SECRET": SECRET_KEY}
"""What the keys of the conf refer to."""


def conf_in_store(folder: Path, endpoint: str, bucket: str) -> Path:
    """Copy the default conf to `folder/conf`, with its lake in the bucket. Landing folders are below `folder`."""
    shutil.copytree(ROOT / "conf", folder / "conf", dirs_exist_ok=True)
    move_to_store(folder / "conf", endpoint, bucket)
    return folder / "conf"


def move_to_store(conf: Path, endpoint: str, bucket: str) -> None:
    """Let a conf say that its lake is at s3://BUCKET/lake."""
    place = f"lake: s3://{bucket}/lake\nstore:\n  endpoint: {endpoint}\n"
    keys = "  access_key: ${env:STORE_KEY}\n  secret_key: ${env:STORE_SECRET}"
    text, count = re.subn(r"^lake: .*$", lambda _: place + keys, (conf / "pipeline.yml").read_text(), flags=re.MULTILINE)
    assert count == 1
    (conf / "pipeline.yml").write_text(text)
