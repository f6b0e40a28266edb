"""A Gaussian process in NumPy and float64, written from the textbook and independent of jedax."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.optimize

from jedax.gp import GPData

KINDS = {True: "weighted", False: "standard"}  # values of the setting `gp`


@dataclass
class ReferenceGP:
    """Rasmussen & Williams, algorithm 2.1, with noise `noise^2 * weights + floor * signal^2`."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    signal: float
    length_scale: float
    noise: float
    floor: float = 1e-10

    def kernel(self, a, b):
        squared = ((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2)
        return self.signal**2 * np.exp(-squared / (2 * self.length_scale**2))

    @property
    def matrix(self):
        diagonal = self.noise**2 * self.weights + self.floor * self.signal**2
        return self.kernel(self.x, self.x) + np.diag(diagonal)

    def log_likelihood(self):
        sign, log_determinant = np.linalg.slogdet(self.matrix)
        assert sign > 0
        quadratic = self.y @ np.linalg.solve(self.matrix, self.y)
        return -0.5 * (quadratic + log_determinant + len(self.y) * np.log(2 * np.pi))

    def mean(self, query):
        return self.kernel(query, self.x) @ np.linalg.solve(self.matrix, self.y)

    def covariance(self, query):
        cross = self.kernel(self.x, query)
        return self.kernel(query, query) - cross.T @ np.linalg.solve(self.matrix, cross)


def standardised(fitness):
    return (fitness - fitness.mean()) / fitness.std()


def log_likelihood(theta, x, fitness, weights, floor=1e-10):
    """Return the log marginal likelihood of the standardised fitness at the logs of `s, l, s_n`."""
    return ReferenceGP(x, standardised(fitness), weights, *np.exp(theta), floor).log_likelihood()


def front(mean, variance):
    """Return the cells that no other cell beats in mean and variance."""
    beaten = (mean[:, None] < mean) & (variance[:, None] <= variance)
    return set(np.flatnonzero(~beaten.any(axis=1)).tolist())


def best_log_likelihood(settings, x, fitness, weights, starts, **options):
    """Return the highest likelihood that SciPy finds inside the bounds from any of the starts."""
    return -best_fit(settings, x, fitness, weights, starts, **options).fun


def best_fit(settings, x, fitness, weights, starts, **options):
    """Return SciPy's best result: `x`, the logs of `s, l, s_n`, and `fun`, minus the log likelihood."""
    squared, y, floor = ((x[:, None] - x[None]) ** 2).sum(axis=2), standardised(fitness), settings.gp_noise_floor

    def loss(theta):
        """Return minus the likelihood and its gradient, Rasmussen & Williams eqs. (2.30) and (5.9)."""
        signal, length_scale, noise = np.exp(2 * theta)
        kernel = signal * np.exp(-squared / (2 * length_scale))
        try:
            lower = np.linalg.cholesky(kernel + np.diag(noise * weights + floor * signal))
        except np.linalg.LinAlgError:
            return 1e10, np.zeros(3)
        inverse = scipy.linalg.cho_solve((lower, True), np.eye(len(y)))
        solution = inverse @ y
        value = 0.5 * y @ solution + np.log(np.diag(lower)).sum() + 0.5 * len(y) * np.log(2 * np.pi)
        rest = np.outer(solution, solution) - inverse
        by_signal = (rest * kernel).sum() + floor * signal * np.trace(rest)
        by_length_scale = 0.5 * (rest * kernel * squared).sum() / length_scale
        return value, -np.array([by_signal, by_length_scale, noise * np.diag(rest) @ weights])

    found = [
        scipy.optimize.minimize(
            loss, np.log(start), jac=True, bounds=np.log(settings.gp_bounds), method="L-BFGS-B", options=options
        )
        for start in starts
    ]
    return min(found, key=lambda result: result.fun)


def cells(seed, num, side=16):
    """Return descriptors, maze-like fitness and counts of `num` cells of a grid; float32 values."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(side**2)[:num]
    x = (np.stack([chosen // side, chosen % side], axis=1) + rng.uniform(0, 1, (num, 2))) / side
    distance = np.hypot(*(x - 0.9).T)
    counts = np.floor(10 ** rng.uniform(0, 5, num))
    fitness = -250 - 100 * distance + 130 * (distance < 0.15) + 25 * ((x[:, 1] > 0.6) & (x[:, 0] < 0.5))
    fitness = fitness - rng.exponential(30, num) / np.sqrt(counts)
    return tuple(a.astype(np.float32).astype(float) for a in (x, fitness, counts))


def to_data(x, fitness, counts, size=None, padding=np.nan):
    """Return a `GPData`, padded to `size` rows with `padding`."""
    num = len(fitness)
    rows = (size or num) - num
    pad = [np.concatenate([a, np.full((rows, *a.shape[1:]), padding)]) for a in (x, fitness, counts)]
    return GPData(*(jnp.asarray(a, jnp.float32) for a in pad), mask=jnp.arange(num + rows) < num)


def dense(tiles):
    """Return a lower triangular matrix given by its tiles as one float64 array."""
    rows = np.concatenate([np.concatenate(list(row), axis=1) for row in np.asarray(tiles, float)])
    return np.tril(rows)


def logs(hyperparameters):
    """Return the logs of `s, l, s_n` as a float64 vector."""
    h = hyperparameters
    return np.array([h.log_signal, h.log_length_scale, h.log_noise], float)
