"""What Great Expectations does not do well: measures that compare tables with their own history, with each other, and with conf."""
