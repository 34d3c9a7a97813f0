"""The account of silver: where every measurement of a bronze row is, and the way back out of quarantine."""
