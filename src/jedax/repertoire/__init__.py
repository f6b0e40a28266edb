"""The repertoire: what each behaviour achieved, cell by cell."""

from jedax.repertoire.cells import Cells
from jedax.repertoire.repertoire import Repertoire

__all__ = ["Cells", "Repertoire"]
