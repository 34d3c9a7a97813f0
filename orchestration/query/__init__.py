"""Queries of people and tools, each over one snapshot: what was asked, the engines that answer, the fence around them."""
