"""Jobs that follow gold: amendments, idle groups, flows and alerts, and the snapshot that pins all of it."""
