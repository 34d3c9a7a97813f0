"""Alerts that people are notified of where events arrive: `tidemark alerts watch`."""
