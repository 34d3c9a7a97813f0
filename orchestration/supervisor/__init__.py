"""The supervisor: it starts, watches and ends the work of a lake: runs, schedules, the quality gate, the switch of generations."""
