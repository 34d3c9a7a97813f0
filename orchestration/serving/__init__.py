"""Answers for people and tools: SQL, BI servers, dbt marts, pictures."""
