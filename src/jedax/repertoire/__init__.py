"""The repertoire: what each behaviour achieved, cell by cell."""

from jedax.repertoire.cells import Cells
from jedax.repertoire.repertoire import HARD, Acceptance, Repertoire

__all__ = ["HARD", "Acceptance", "Cells", "Repertoire"]
