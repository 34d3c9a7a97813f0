"""The next generation of silver and gold: built by a replay, or an earlier one again by a rollback."""
