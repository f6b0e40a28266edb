"""Search spaces: the parameters in a user's units, and the genotypes on which evolution strategies work."""

from jedax.space.parameters import Choice, Integer, Real
from jedax.space.space import Space

__all__ = ["Choice", "Integer", "Real", "Space"]
