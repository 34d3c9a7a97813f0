"""Queries of people and tools, each over one snapshot: the question, the engines that answer it, the guard around them."""
