"""The repertoire: the best solution of each cell of the descriptor space."""

from jedax.repertoire.acceptance import HARD, Acceptance
from jedax.repertoire.cells import Cells
from jedax.repertoire.repertoire import Repertoire

__all__ = ["HARD", "Acceptance", "Cells", "Repertoire"]
