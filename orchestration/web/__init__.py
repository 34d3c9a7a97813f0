"""The live page of a lake: `tidemark serve`."""
