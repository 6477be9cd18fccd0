"""Adversarial training: robust accuracy rises, and the training step does not pass through the attack."""

from __future__ import annotations

import numpy as np
import pytest

from examples import adversarial


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return adversarial.main(epochs=8, out=tmp_path_factory.mktemp("adversarial"))


def test_robust_accuracy_rises_and_clean_accuracy_stays(result):
    standard = result.accuracy["nothing"]
    for trained in ("FGSM", "PGD"):
        robust = result.accuracy[trained]
        assert robust["FGSM"] > standard["FGSM"] + 0.2
        assert robust["PGD"] > standard["PGD"] + 0.2
        assert robust["nothing"] > 0.85
    assert standard["nothing"] > 0.9
    assert result.plot.stat().st_size > 0


def test_the_training_step_does_not_pass_through_the_attack(result):
    assert result.same_gradient_as_from_data
    assert result.cut.replace("\\", "/").startswith("stop_gradient 'attack' at examples/adversarial.py:")


def test_an_attack_keeps_its_radius_and_raises_the_loss(rng):
    network = adversarial.make_network(rng)
    images, labels = rng.uniform(size=(20, 64)), rng.integers(10, size=20)
    before = float(adversarial.loss(network, images, labels))
    fgsm, pgd = (adversarial.attack(network, images, labels, steps).numpy() for steps in (1, 7))
    for attacked in (fgsm, pgd):
        assert np.abs(attacked - images).max() <= adversarial.RADIUS + 1e-12
        assert attacked.min() >= 0
        assert attacked.max() <= 1
    after = [float(adversarial.loss(network, attacked, labels)) for attacked in (fgsm, pgd)]
    assert before < after[0] < after[1]
