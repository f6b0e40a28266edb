"""TD3 written out in NumPy and float64, back-propagation by hand, after Fujimoto et al. 2018, Method 1."""

import itertools

import numpy as np


def layers_of(flat, sizes):
    """Kernels and biases of a flat network, as views."""
    found, start = [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        kernel = flat[start : start + inputs * outputs].reshape(inputs, outputs)
        start += inputs * outputs
        found.append((kernel, flat[start : start + outputs]))
        start += outputs
    assert start == len(flat)
    return found


class Net:
    """A multilayer perceptron: relu (tanh if `smooth`), then a linear output, or tanh where it is a policy."""

    def __init__(self, sizes, tanh, smooth=False):
        self.sizes, self.tanh, self.smooth = sizes, tanh, smooth

    def forward(self, flat, x):
        """Return the outputs, and every layer's input."""
        inputs = []
        layers = layers_of(flat, self.sizes)
        for number, (kernel, bias) in enumerate(layers):
            inputs.append(x)
            x = x @ kernel + bias
            if number < len(layers) - 1:
                x = np.tanh(x) if self.smooth else np.maximum(x, 0)
        return (np.tanh(x) if self.tanh else x), inputs

    def backward(self, flat, inputs, outputs, slope):
        """Return the slopes of weights and inputs, given those of the outputs."""
        slope = slope * (1 - outputs**2) if self.tanh else slope
        parts = []
        for number in reversed(range(len(inputs))):
            kernel, _ = layers_of(flat, self.sizes)[number]
            parts = [(inputs[number].T @ slope).ravel(), slope.sum(axis=0), *parts]
            slope = slope @ kernel.T
            if number > 0:
                slope = slope * (1 - inputs[number] ** 2 if self.smooth else inputs[number] > 0)
        return np.concatenate(parts), slope


class Adam:
    """Kingma & Ba 2015, Method 1."""

    def __init__(self, rate, size):
        self.rate, self.steps, self.first, self.second = rate, 0, np.zeros(size), np.zeros(size)

    def step(self, point, slope):
        """Return the point after one step downhill."""
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * slope
        self.second = 0.999 * self.second + 0.001 * slope**2
        first = self.first / (1 - 0.9**self.steps)
        second = self.second / (1 - 0.999**self.steps)
        return point - self.rate * first / (np.sqrt(second) + 1e-8)


class Learner:
    """TD3 with an actor of the given policy sizes and two critics."""

    def __init__(self, policy_sizes, critic_sizes, critics, actor, settings):
        self.policy, self.q = Net(policy_sizes, tanh=True), Net(critic_sizes, tanh=False)
        self.critics = [np.asarray(c, float) for c in critics]
        self.actor = np.asarray(actor, float)
        self.target_critics, self.target_actor = [c.copy() for c in self.critics], self.actor.copy()
        self.settings = settings
        self.critic_adams = [Adam(settings.critic_rate, len(c)) for c in self.critics]
        self.actor_adam = Adam(settings.actor_rate, len(self.actor))
        self.iterations = 0

    def target_values(self, batch, noise):
        """Return the clipped double-Q targets."""
        actions = self.policy.forward(self.target_actor, batch["next_observations"])[0] + noise
        inputs = np.concatenate([batch["next_observations"], np.clip(actions, -1, 1)], axis=1)
        lower = np.minimum(*(self.q.forward(c, inputs)[0][:, 0] for c in self.target_critics))
        return batch["rewards"] + self.settings.discount * (1 - batch["terminal"]) * lower

    def critic_slopes(self, batch, targets):
        """Return the slopes of both critics' mean squared errors, and their sum."""
        inputs = np.concatenate([batch["observations"], batch["actions"]], axis=1)
        slopes, loss = [], 0.0
        for critic in self.critics:
            values, kept = self.q.forward(critic, inputs)
            error = values[:, 0] - targets
            loss += np.mean(error**2)
            slopes.append(self.q.backward(critic, kept, values, 2 * error[:, None] / len(error))[0])
        return slopes, loss

    def actor_slope(self, actor, observations):
        """Return the slope of minus the mean of the first critic."""
        actions, policy_kept = self.policy.forward(actor, observations)
        values, kept = self.q.forward(self.critics[0], np.concatenate([observations, actions], axis=1))
        back = self.q.backward(self.critics[0], kept, values, np.full_like(values, -1 / len(values)))[1]
        return self.policy.backward(actor, policy_kept, actions, back[:, observations.shape[1] :])[0]

    def iterate(self, batch, noise):
        """One iteration of the algorithm's loop, after the transition is stored."""
        self.iterations += 1
        slopes, self.loss = self.critic_slopes(batch, self.target_values(batch, noise))
        self.critics = [a.step(c, s) for a, c, s in zip(self.critic_adams, self.critics, slopes, strict=True)]
        if self.iterations % self.settings.policy_delay == 0:
            self.actor = self.actor_adam.step(self.actor, self.actor_slope(self.actor, batch["observations"]))
            tau = self.settings.soft_update
            self.target_critics = [
                tau * c + (1 - tau) * t for c, t in zip(self.critics, self.target_critics, strict=True)
            ]
            self.target_actor = tau * self.actor + (1 - tau) * self.target_actor
