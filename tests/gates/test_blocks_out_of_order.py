"""Blocks that do not end in the order in which they began: generators, coroutines, tapes, threads.

However they end, the thread's state is then what it was, and what was open meanwhile went on as it should.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import stopgrad as sg
import stopgrad.tf as tf
from stopgrad.core.errors import ArgumentTypeError, TapeError
from stopgrad.core.state import state


@pytest.fixture(autouse=True)
def _state_is_restored() -> Iterator[None]:
    yield
    now = (state.recording, state.levels, state.block, dict(state.frozen), state.entered)
    assert now == (False, (), None, {}, [])


@pytest.mark.parametrize("make", [sg.GradientTape, tf.GradientTape])
def test_tapes_closed_in_the_wrong_order(make: Any) -> None:
    x = sg.Variable(3.0)
    first, second = make(), make()
    first.__enter__()
    y = x * x
    second.__enter__()
    z = x * x * x
    first.__exit__(None, None, None)
    late = x * 2
    second.__exit__(None, None, None)
    assert float(first.gradient(y, x)) == 6
    assert [float(second.gradient([z, late], x))] == [29]


def test_a_generator_closed_inside_another_block() -> None:
    w = sg.Variable(2.0)

    def steps() -> Iterator[int]:
        with sg.no_gradient():
            yield 1

    suspended = steps()
    next(suspended)
    with sg.frozen(w):
        suspended.close()
        assert state.block is None
        w.assign(5.0)
        assert float(w) == 2
    assert float(sg.grad(lambda x: x * w)(1.0)) == 2


def test_frozen_blocks_closed_in_the_wrong_order() -> None:
    a, b = sg.Variable(1.0), sg.Variable(1.0)
    first, second = sg.frozen(a), sg.frozen(b)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    a.assign(2.0)
    b.assign(2.0)
    second.__exit__(None, None, None)
    assert (float(a), float(b)) == (2, 1)


def test_tapes_of_interleaved_coroutines() -> None:
    async def task(value: float, turns: int) -> float:
        x = sg.Variable(value)
        with sg.GradientTape() as tape:
            y = x * x
            for _ in range(turns):
                await asyncio.sleep(0)
            y = y * x
        return float(tape.gradient(y, x))

    async def main() -> list[float]:
        return await asyncio.gather(task(2.0, 3), task(3.0, 1), task(4.0, 5))

    assert asyncio.run(main()) == [12, 27, 48]


def test_a_decorated_generator_stops_what_it_computes_and_nothing_else() -> None:
    @sg.no_gradient()
    def squares(x: Any) -> Any:
        got = yield x * x
        yield got * x

    def f(x: Any) -> Any:
        running = squares(x)
        constant = next(running)
        between = x * x
        return x * constant + between + running.send(x)

    assert float(sg.grad(f)(3.0)) == 9 + 6


def test_a_decorated_generator_gets_what_is_thrown_in_and_returns() -> None:
    @sg.no_gradient()
    def inner() -> Any:
        try:
            yield 1
        except KeyError:
            yield 2
        return 3

    running = inner()
    assert next(running) == 1
    assert running.throw(KeyError()) == 2
    with pytest.raises(StopIteration) as end:
        next(running)
    assert end.value.value == 3


def test_a_decorated_coroutine_stops_what_it_computes_and_nothing_else() -> None:
    @sg.no_gradient()
    async def square(x: Any) -> Any:
        await asyncio.sleep(0)
        return x * x

    async def cube(x: Any) -> Any:
        y = x * x * x
        await asyncio.sleep(0)
        return y * x

    async def both(x: Any) -> Any:
        return await asyncio.gather(square(x), cube(x))

    def f(x: Any) -> Any:
        constant, power = asyncio.run(both(x))
        return x * constant + power

    assert float(sg.grad(f)(3.0)) == 9 + 4 * 27


def test_what_cannot_be_decorated_is_refused() -> None:
    async def numbers() -> AsyncIterator[int]:
        yield 1

    with pytest.raises(ArgumentTypeError, match="asynchronous generator numbers"):
        sg.no_gradient()(numbers)
    with pytest.raises(ArgumentTypeError, match=r"@no_gradient\(\), with parentheses"):

        @sg.no_gradient
        def f(x: Any) -> Any:
            return x


def test_a_block_left_in_another_thread_says_so() -> None:
    tape = sg.GradientTape()
    tape.__enter__()
    found: list[BaseException] = []

    def leave() -> None:
        try:
            state.leave(tape._level)
        except TapeError as error:
            found.append(error)

    thread = threading.Thread(target=leave)
    thread.start()
    thread.join()
    tape.__exit__(None, None, None)
    assert "another thread" in str(found[0])


def test_two_threads_watch_the_same_tensor() -> None:
    x = sg.tensor(3.0)
    watched, second_watches = threading.Event(), threading.Event()
    found = {}

    def first() -> None:
        with sg.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            watched.set()
            assert second_watches.wait(10)
        found["first"] = tape.gradient(y, x)

    def second() -> None:
        assert watched.wait(10)
        with sg.GradientTape() as tape:
            tape.watch(x)
            second_watches.set()
            other.join(10)
            y = x * x * x
        found["second"] = tape.gradient(y, x)

    other = threading.Thread(target=first)
    threads = [other, threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert {name: float(one) for name, one in found.items()} == {"first": 6, "second": 27}
    assert x.node is None
