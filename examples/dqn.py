"""Deep Q-learning on CartPole-v1 with a target network (Mnih et al., 2015, doi:10.1038/nature14236).

The value of an action is trained towards a goal: reward + discount · best value of the next state, as a second network
sees it, the target network, a copy of the first that is renewed now and then. The goal is data, not something to train.
So it is stopped. The loss reads both networks and is minimized with no word on which of them to train; the gate alone
decides, and the run checks bit for bit that the target network stands still between two renewals.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Column, Table

import stopgrad as sg

DISCOUNT = 0.99
LEARNING_RATE = 1e-3
BATCH_SIZE = 64
FIRST_UPDATE = 500  # steps of play before the first update
SYNC_EVERY = 200  # updates between two renewals of the target network
EVALUATE_EVERY = 1000  # steps
SOLVED = 475.0  # training ends at this mean return, twice in a row; 500 is the most there is
SCALE = np.array([2.4, 2.0, 0.2, 2.0])  # brings positions, speeds, angles and angular speeds to the same size

Network = list[tuple[sg.Variable, sg.Variable]]
Transition = tuple[np.ndarray, int, float, np.ndarray, bool]  # state, action, reward, next state, whether it stood
Batch = list[np.ndarray]


class Result(NamedTuple):
    """What a run found; a return is the number of steps an episode lasted."""

    mean_return: float
    random_return: float
    untrained_return: float
    steps: int
    syncs: int
    target_moved_between_syncs: bool
    reach: dict[str, str]
    plot: Path


def make_network(name: str, rng: np.random.Generator) -> Network:
    """Return layers (weight, bias). The last starts from zero, so that no action is thought better before training."""
    network = []
    for number, (inputs, outputs, size) in enumerate(((4, 64, 1), (64, 64, 1), (64, 2, 0)), start=1):
        weight = size * rng.uniform(-1, 1, (inputs, outputs)) * np.sqrt(3 / inputs)
        network.append(
            (
                sg.Variable(weight, name=f"{name}/weight{number}"),
                sg.Variable(np.zeros(outputs), name=f"{name}/bias{number}"),
            )
        )
    return network


def action_values(network: Network, states: np.ndarray) -> sg.Tensor:
    """Return the value of both actions in each state, shape (..., 2)."""
    *hidden, (last_weight, last_bias) = network
    features = sg.tensor(states / SCALE)
    for weight, bias in hidden:
        features = sg.tanh(features @ weight + bias)
    return features @ last_weight + last_bias


def sample(memory: list[Transition], rng: np.random.Generator) -> Batch:
    rows = rng.integers(len(memory), size=BATCH_SIZE)
    return [np.array(field) for field in zip(*(memory[row] for row in rows), strict=True)]


def q_loss(online: Network, target: Network, batch: Batch) -> sg.Tensor:
    """Return how far the online network's values are from their goals (Huber's loss)."""
    states, actions, rewards, next_states, going_on = batch
    values = action_values(online, states)[np.arange(len(actions)), actions]
    best = sg.max(action_values(target, next_states), axis=1)
    goals = sg.stop_gradient(rewards + DISCOUNT * going_on * best, name="goals")
    return sg.train.losses.huber_loss(goals, values)


def greedy(network: Network) -> Callable[[np.ndarray], int]:
    """Return the policy that takes the action of the highest value."""
    return lambda state: int(np.argmax(action_values(network, state)))


def mean_return(policy: Callable[[np.ndarray], int], episodes: int, seed: int) -> float:
    """Return how many steps a policy keeps the pole up, on average."""
    environment = gymnasium.make("CartPole-v1")
    steps = 0
    for episode in range(episodes):
        state, _ = environment.reset(seed=seed if episode == 0 else None)
        over = False
        while not over:
            state, _, fallen, late, _ = environment.step(policy(state))
            over = fallen or late
            steps += 1
    return steps / episodes


def copy_weights(source: Network, target: Network) -> None:
    for own, theirs in zip(variables(target), variables(source), strict=True):
        own.assign(theirs)


def variables(network: Network) -> list[sg.Variable]:
    return [variable for layer in network for variable in layer]


def as_bytes(network: Network) -> list[bytes]:
    return [variable.numpy().tobytes() for variable in variables(network)]


def reach(loss: Callable[[], sg.Tensor], sought: Iterable[sg.Variable]) -> dict[str, str]:
    """Say for each variable whether the loss reaches it, and if not, what cut it off."""
    found = {}
    for variable in sought:
        try:
            sg.train.variable_gradients(loss, variable, unconnected="error")
            found[variable.name] = "yes"
        except sg.errors.UnconnectedError as error:
            gate = str(error).partition("there is ")[2].replace(os.getcwd() + os.sep, "")
            found[variable.name] = f"no, cut by {gate}"
    return found


def main(steps: int = 20_000, seed: int = 0, out: Path = Path("out"), evaluation_episodes: int = 20) -> Result:
    """Train for at most so many steps of play, evaluate the best network there was, and report."""
    rng = np.random.default_rng(seed)
    online, target, best = (make_network(name, rng) for name in ("online", "target", "best"))
    optimizer = sg.train.Adam(LEARNING_RATE)
    memory: list[Transition] = []
    training_returns, evaluations = [0.0], [(0, mean_return(greedy(online), 10, seed=10_000))]
    syncs, moved, updates = 0, False, 0
    environment = gymnasium.make("CartPole-v1")
    state, _ = environment.reset(seed=seed)
    for network in (target, best):
        copy_weights(online, network)
    target_before = as_bytes(target)
    with Progress(disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task("playing", total=steps)
        for step in range(1, steps + 1):
            exploring = rng.random() < max(0.05, 1 - step / 4000)
            action = int(rng.integers(2)) if exploring else greedy(online)(state)
            next_state, _, fallen, late, _ = environment.step(action)
            # The pole's fall is all that is punished, so that values stay between -1 and 0.
            memory.append((state, action, -float(fallen), next_state, not fallen))
            training_returns[-1] += 1
            state = next_state
            if fallen or late:
                state, _ = environment.reset()
                training_returns.append(0.0)
            if step > FIRST_UPDATE:
                batch = sample(memory, rng)
                optimizer.minimize(lambda batch=batch: q_loss(online, target, batch))
                updates += 1
                if updates % SYNC_EVERY == 0:
                    moved = moved or as_bytes(target) != target_before
                    copy_weights(online, target)
                    target_before, syncs = as_bytes(target), syncs + 1
            if step % EVALUATE_EVERY == 0:
                evaluations.append((step, mean_return(greedy(online), 10, seed=10_000 + step)))
                if evaluations[-1][1] >= max(result for _, result in evaluations):
                    copy_weights(online, best)
                progress.update(task, description=f"playing, mean return {evaluations[-1][1]:.0f}")
            progress.update(task, completed=step)
            if min(result for _, result in evaluations[-2:]) >= SOLVED:
                break
    moved = moved or as_bytes(target) != target_before
    batch = sample(memory, rng)
    reached = reach(lambda: q_loss(online, target, batch), [*variables(online), *variables(target)])
    result = Result(
        mean_return(greedy(best), evaluation_episodes, seed=1_000_000 + seed),
        mean_return(lambda _: int(rng.integers(2)), evaluation_episodes, seed=1_000_000 + seed),
        evaluations[0][1],
        step,
        syncs,
        moved,
        reached,
        draw(training_returns, evaluations, out),
    )
    report(result)
    return result


def draw(training_returns: list[float], evaluations: list[tuple[int, float]], out: Path) -> Path:
    """Plot how long the pole stood, in training and in evaluation."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.add_subplot(xlabel="step of play", ylabel="return", title="DQN on CartPole-v1")
    axes.plot(np.cumsum(training_returns), training_returns, ".", alpha=0.4, label="episode in training")
    axes.plot(*zip(*evaluations, strict=True), "o-", label="mean of 10 greedy episodes")
    axes.legend()
    out.mkdir(parents=True, exist_ok=True)
    figure.savefig(out / "dqn.png")
    return out / "dqn.png"


def report(result: Result) -> None:
    """Print what was found, and for each variable whether the loss reached it."""
    print(f"In {result.steps} steps of play it learned to keep the pole up for {result.mean_return:.1f} on average")
    print(f"(500 is the most there is; {result.untrained_return:.1f} untrained, {result.random_return:.1f} at random).")
    table = Table("variable", Column("does the loss reach it?", overflow="fold"))
    for name, how in result.reach.items():
        table.add_row(name, how)
    Console().print(table)
    what = "MOVED" if result.target_moved_between_syncs else "did not move, bit for bit,"
    print(f"The target network {what} between its {result.syncs} renewals.")
    print(f"Plot: {result.plot}")


if __name__ == "__main__":
    main()
