"""Choosing target cells from what a model predicts for all of them."""

from jedax.targets.pareto import choose_pareto, pareto_rank
from jedax.targets.ucb import choose_bucb, choose_ucb
from jedax.targets.uniform import choose_uniform

__all__ = ["choose_bucb", "choose_pareto", "choose_ucb", "choose_uniform", "pareto_rank"]
