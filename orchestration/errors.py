"""Errors meant for people: one sentence that says where, what and the way out; the command line turns each into its exit code."""


class TidemarkError(Exception):
    """It broke, but we know how: shown as one sentence, with a trace only under --debug."""

    exit_code = 4


class ConfError(TidemarkError):
    """Wrong usage or conf: one line per mistake, all of them at once."""

    exit_code = 2


class HeldError(TidemarkError):
    """Someone else holds the lake."""

    exit_code = 3
