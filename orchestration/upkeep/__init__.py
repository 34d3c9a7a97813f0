"""Fewer and larger files, and none that nobody needs."""
