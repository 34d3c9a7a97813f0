"""What runs a lake by itself: `tidemark up`, its processes and what they say."""
