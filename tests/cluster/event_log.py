"""What the event log of Spark says of a run: which executor, on which machine, did which task of which flow."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETTINGS = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"}
LOST, DONE = "ExecutorLostFailure", "Success"


@dataclass(frozen=True)
class Task:
    """`flow`: or the job; empty where none asked for it. `end`: such as LOST or DONE. `sent`: bytes that the driver gets."""

    flow: str
    executor: str
    machine: str
    end: str
    seconds: float
    sent: int


def tasks(folder: Path) -> Iterator[Task]:
    """Of all runs that logged there."""
    for log in folder.iterdir():
        flows: dict[int, str] = {}
        for event in map(json.loads, log.read_text().splitlines()):
            if event["Event"] == "SparkListenerStageSubmitted":
                flow = re.match(r"[a-z]+(\.\w+)?", event.get("Properties", {}).get("spark.job.description", ""))
                flows[event["Stage Info"]["Stage ID"]] = flow[0] if flow else ""
            elif event["Event"] == "SparkListenerTaskEnd":
                task, end, did = event["Task Info"], event["Task End Reason"]["Reason"], event.get("Task Metrics") or {}
                seconds, sent = did.get("Executor Run Time", 0) / 1000, did.get("Result Size", 0)
                yield Task(flows[event["Stage ID"]], task["Executor ID"], task["Host"], end, seconds, sent)
