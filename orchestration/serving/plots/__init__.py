"""Pictures: vectors of a group, and the account of bronze."""
