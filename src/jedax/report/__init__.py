"""Pictures of a run, made from what it left; nothing here runs a search."""

from jedax.imports import lazy_names

__getattr__, _ = lazy_names(__name__, {}, ("comparisons", "plots"))  # the figures as functions
