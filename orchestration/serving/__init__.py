"""Answers for people and tools: SQL, dbt marts, pictures."""
