"""Alerts that are told where events arrive: `tidemark alerts watch`."""
