"""The Siamese network: with the goal stopped embeddings stay spread, with the gate open they collapse."""

from __future__ import annotations

import pytest

from examples import simsiam


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return simsiam.main(epochs=20, out=tmp_path_factory.mktemp("simsiam"))


def test_without_the_stop_it_collapses_and_with_it_it_does_not(result):
    assert result.stopped.spread[-1] > 0.6
    assert result.opened.spread[-1] < 0.1
    assert result.opened.loss < -0.99  # collapsing is what the loss asks for
    assert result.plot.stat().st_size > 0


def test_classes_can_be_told_apart_by_the_embeddings_that_did_not_collapse(result):
    assert result.stopped.accuracy > 0.8
    assert result.opened.accuracy < result.stopped.accuracy - 0.1
