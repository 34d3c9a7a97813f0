"""The account of every event, and what is wrong with it."""
