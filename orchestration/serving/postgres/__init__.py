"""Snapshots of a lake for clients of PostgreSQL."""
