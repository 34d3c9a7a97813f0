"""Connectors: sources of events and targets of results."""
