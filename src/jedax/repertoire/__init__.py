"""The repertoire: the best solution of each cell of the descriptor space."""

from jedax.repertoire.cells import Cells
from jedax.repertoire.repertoire import HARD, Acceptance, Repertoire

__all__ = ["HARD", "Acceptance", "Cells", "Repertoire"]
