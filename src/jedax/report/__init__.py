"""Pictures of a run, made from what it left; nothing here runs a search."""
