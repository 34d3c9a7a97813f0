"""A notebook: a process with Spark Connect's client, asked by JSON lines on stdin, which answers each by one on stdout.

python notebook.py PORT TOKEN. {"query": ...}: its rows; {"session": "new"}: from now on another session; {"program": ...}: what is in
`answer` when a Python function has run it on the server; {"write": path}: try to write a table there.
"""

import json
import sys
import warnings
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.functions import lit, udf
from pyspark.sql.types import StringType

warnings.simplefilter("ignore")


def opened() -> SparkSession:
    """A session of its own."""
    return SparkSession.builder.remote(f"sc://localhost:{sys.argv[1]}/;token={sys.argv[2]}").create()


def run(program: str) -> str:
    """On the server."""
    names: dict[str, Any] = {}
    exec(program, names)
    return str(names["answer"])


def answered(spark: SparkSession, asked: dict[str, str]) -> Any:
    """What there is to say to a question."""
    if "program" in asked:
        return spark.range(1).select(udf(run, StringType())(lit(asked["program"]))).collect()[0][0]
    if "write" in asked:
        return spark.range(1).write.format(asked["format"]).mode("append").save(asked["write"])
    return [list(row) for row in spark.sql(asked["query"]).collect()]


def main() -> None:
    """Until stdin ends."""
    spark = opened()
    for line in sys.stdin:
        asked = json.loads(line)
        if "session" in asked:
            spark.stop()
            spark, answer = opened(), {}
        else:
            try:
                answer = {"answer": answered(spark, asked)}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), flush=True)


main()
