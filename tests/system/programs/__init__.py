"""The fetching of real programs (tools/programs.py)."""
