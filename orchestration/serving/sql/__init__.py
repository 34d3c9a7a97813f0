"""SQL over one snapshot of the lake, for people and tools: the engines, the SQL guard, the HTTP server and the shell."""
