"""SQL over one snapshot of the lake, the engines, the guard, the shell, and the processes of the page's queries."""
