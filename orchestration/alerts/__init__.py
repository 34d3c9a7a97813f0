"""Records of alerts: what people said of them, what was sent, and what changed."""
