"""Proofs: the account of every event, and the second evaluator."""
