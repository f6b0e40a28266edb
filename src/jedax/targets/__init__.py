"""The choice of target cells, from a model's prediction for all cells or uniformly."""

from jedax.targets.pareto import choose_pareto, pareto_rank
from jedax.targets.ucb import choose_bucb, choose_ucb
from jedax.targets.uniform import choose_uniform

__all__ = ["choose_bucb", "choose_pareto", "choose_ucb", "choose_uniform", "pareto_rank"]
