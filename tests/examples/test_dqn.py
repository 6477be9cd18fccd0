"""DQN: it learns, the loss reaches the online network only, and the target network stands still between renewals."""

from __future__ import annotations

import numpy as np
import pytest

import stopgrad as sg
from examples import dqn


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return dqn.main(steps=3000, evaluation_episodes=10, out=tmp_path_factory.mktemp("dqn"))


@pytest.fixture
def networks(rng):
    networks = dqn.make_network("online", rng), dqn.make_network("target", rng)
    for variable in [*dqn.variables(networks[0]), *dqn.variables(networks[1])]:
        variable.assign(rng.normal(size=variable.shape))
    return networks


@pytest.fixture
def batch(rng):
    memory = [(rng.normal(size=4), i % 2, -1.0, rng.normal(size=4), i % 3 == 0) for i in range(50)]
    return dqn.sample(memory, rng)


def test_it_learns(result):
    assert result.untrained_return < 15
    assert result.random_return < 40
    assert result.mean_return > 100
    assert result.plot.stat().st_size > 0


def test_the_target_network_stands_still_between_renewals(result):
    assert result.syncs > 10
    assert not result.target_moved_between_syncs


def test_the_report_names_the_gate_for_each_variable_of_the_target_network(result):
    assert len(result.reach) == 12
    for name, how in result.reach.items():
        if name.startswith("online/"):
            assert how == "yes"
        else:
            assert "stop_gradient 'goals' at examples/dqn.py:" in how.replace("\\", "/")


def test_a_step_on_the_loss_changes_the_online_network_only(networks, batch):
    online, target = networks
    before = dqn.as_bytes(online), dqn.as_bytes(target)
    sg.train.AdamW(0.01, weight_decay=0.1).minimize(lambda: dqn.q_loss(online, target, batch))
    assert dqn.as_bytes(target) == before[1]
    assert all(now != then for now, then in zip(dqn.as_bytes(online), before[0], strict=True))


def test_the_gradient_is_that_with_goals_given_as_data(networks, batch):
    online, target = networks
    states, actions, rewards, next_states, going_on = batch
    goals = rewards + dqn.DISCOUNT * going_on * dqn.action_values(target, next_states).numpy().max(axis=1)

    def loss_on_data():
        values = dqn.action_values(online, states)[np.arange(len(actions)), actions]
        return sg.train.losses.huber_loss(goals, values)

    _, expected = sg.train.variable_gradients(loss_on_data)
    _, found = sg.train.variable_gradients(lambda: dqn.q_loss(online, target, batch))
    for variable in dqn.variables(online):
        np.testing.assert_array_equal(found[variable], expected[variable])
    assert all(found[variable] is None for variable in dqn.variables(target))
