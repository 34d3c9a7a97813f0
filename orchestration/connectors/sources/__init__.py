"""Where events come from: each source brings rows and a position to bronze."""
