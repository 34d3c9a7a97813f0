"""`tidemark up`: the processes that run a lake, and what they say."""
