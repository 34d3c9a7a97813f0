"""Measures: expectations that compare tables with their own history, with each other, and with conf."""
