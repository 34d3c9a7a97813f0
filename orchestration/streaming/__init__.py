"""Streaming queries: what they read and write, and what their checkpoints tell."""
