"""Jobs beside the streams: each follows tables, and does what came since."""
