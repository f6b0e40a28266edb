"""The search: its loop, what is compiled, and where evaluations are done."""
