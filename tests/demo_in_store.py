"""`make demo-s3`: the demo with its lake in an object store of this machine; the conf differs by the place of the lake alone."""

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.object_store import Store
from tests.store_lakes import ENVIRONMENT, ROOT, conf_in_store

FOLDER = ROOT / "artifacts" / "demo-s3"
BUCKET = "tidemark"
EVENTS = 240_000
TIDEMARK = str(Path(sys.executable).with_name("tidemark"))
STEPS = (
    ("devices that behave like the field", ["simulate", "--to", f"{FOLDER}/landing", "--events", str(EVENTS)]),
    ("bronze -> silver -> gold, in the store", ["run", "--once"]),
    ("the state of the pipeline", ["status"]),
    ("where every event is", ["ledger"]),
    ("silver and gold are what bronze gives", ["verify"]),
    ("marts of that snapshot", ["dbt", "--quiet", "build"]),
    ("a mart beside gold", ["sql", "select count(*) as rows_of_the_mart, (select count(*) from gold.vectors) as vectors from marts.daily"]),
    ("what was expected and what was found", ["quality"]),
)


def main() -> int:
    """Return the exit code of the first step that failed."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    os.environ |= ENVIRONMENT | {"XDG_STATE_HOME": str(FOLDER / "state")}
    with Store(FOLDER).running() as store:
        store.client.create_bucket(Bucket=BUCKET)
        conf = conf_in_store(FOLDER, store.endpoint, BUCKET)
        show("what the conf says of its lake")
        print("".join(_place_of_lake(conf)), end="", flush=True)
        for what, arguments in STEPS:
            show(f"tidemark {arguments[0]}: {what}")
            if code := subprocess.run([TIDEMARK, "--conf", str(conf), *arguments], cwd=FOLDER, check=False).returncode:
                return code
        show(f"what is in the bucket {BUCKET}")
        show_objects(store)
    return 0


def show(step: str) -> None:
    print(f"\n\033[1m== {step}\033[0m", flush=True)


def show_objects(store: Store) -> None:
    """Print objects and bytes by table or folder of the lake."""
    counts, sizes = Counter[str](), Counter[str]()
    for page in store.client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
        for entry in page.get("Contents", ()):
            name = "/".join(Path(entry["Key"]).parts[:-1][:3])
            counts[name] += 1
            sizes[name] += entry["Size"]
    for name in sorted(counts):
        print(f"{counts[name]:6,} objects {sizes[name] / 1e6:8.2f} MB  s3://{BUCKET}/{name}/")
    print(f"{counts.total():6,} objects {sizes.total() / 1e6:8.2f} MB")


def _place_of_lake(conf: Path) -> list[str]:
    lines = (conf / "pipeline.yml").read_text().splitlines(keepends=True)
    start = next(number for number, line in enumerate(lines) if line.startswith("lake:"))
    return lines[start : start + 5]


if __name__ == "__main__":
    sys.exit(main())
