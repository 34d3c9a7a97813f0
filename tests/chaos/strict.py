"""`tidemark` with one suite more: there is a value that nobody wants in gold. A module, since Great Expectations asks for one."""

from expectations.suite import Suite, suite
from orchestration.cli.app import main
from orchestration.quality import suites
from tests.chaos.plants import obey

UNWANTED = 123.25
STRICT = suite(
    "strict",
    {
        "table": "silver.[rl]*",
        "expectations": [
            {
                "type": "expect_column_values_to_not_be_in_set",
                "kwargs": {"column": "value", "value_set": [UNWANTED]},
                "severity": "critical",
                "description": f"Nothing measures {UNWANTED}.",
            }
        ],
    },
)
_packaged = suites.packaged


def with_strict() -> list[Suite]:
    """In place of `suites.packaged`."""
    return [*_packaged(), STRICT]


if __name__ == "__main__":
    obey()
    suites.packaged = with_strict
    main()
