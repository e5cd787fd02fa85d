import inspect

import pytest

from venire import (
    Everyone,
    FixedOverlap,
    Greedy,
    InputError,
    Labeler,
    LearnThenServe,
    LookAhead,
    Random,
    Realised,
    Scheduler,
    UnknownName,
    World,
    simulate,
)
from venire.cli.simulate import simulate as command
from venire.scheduling.base import Learning, Policy
from venire.scheduling.by_name import exported, learning_named, policy_named
from venire.server.settings import StreamSettings


def test_policies_by_name() -> None:
    assert policy_named("greedy") == Greedy()
    assert policy_named("everyone") == Everyone()
    assert policy_named("fixed-overlap") == FixedOverlap(3)
    assert policy_named("fixed-overlap:5") == FixedOverlap(5)
    assert policy_named("random:2", seed=9) == Random(2, seed=9)


def test_one_default_everywhere() -> None:
    panel = [Labeler("ann", 0.9)]
    assert Scheduler(panel, ["a", "b"]).policy == Realised()
    assert simulate(World.synthetic(0), slots=1).policy == Realised()
    assert inspect.signature(command).parameters["policy"].default == Realised.name
    settings = StreamSettings.model_validate({"classes": ["a", "b"], "panel": [{"id": "ann"}]})
    assert policy_named(settings.policy) == Realised()


def test_a_snapshot_keeps_the_policy_that_was_the_default() -> None:
    s = Scheduler([Labeler("ann", 0.9)], ["a", "b"], LookAhead())
    assert Scheduler.restore(s.snapshot()).policy == LookAhead()


def test_learning_by_name() -> None:
    assert learning_named("known") is None
    learning = learning_named("then-serve:45:0.1", seed=9)
    assert isinstance(learning, LearnThenServe)
    assert (learning.slots, learning.rho, learning.seed) == (45, 0.1, 9)


@pytest.mark.parametrize("name", sorted(exported(Policy)))
def test_describe_is_the_inverse(name: str) -> None:
    policy = policy_named(name)
    assert policy_named(policy.describe()) == policy


@pytest.mark.parametrize("text", ["then-serve:45", "then-serve:45:0.25"])
def test_describe_is_the_inverse_for_learning(text: str) -> None:
    learning = learning_named(text)
    assert learning is not None
    assert learning.describe() == text


def test_what_is_exported() -> None:
    assert set(exported(Policy)) == {
        "everyone",
        "fixed-overlap",
        "greedy",
        "lookahead",
        "random",
        "realised",
        "realised-proxy",
        "round-robin",
        "waterfill",
    }
    assert set(exported(Learning)) == {"algorithm-2", "then-serve", "while-serving"}


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'round-robin'"):
        policy_named("roundrobin:3")
    with pytest.raises(UnknownName, match="known: algorithm-2, known, then-serve"):
        learning_named("magic")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("greedy:3", "has 1 setting, expected none: write greedy$"),
        ("random:3:4", "has 2 settings, expected 0 to 1: write random\\[:OVERLAP\\]"),
        ("random:", "has overlap '', expected a whole number"),
        ("random:2.5", "has overlap '2.5', expected a whole number"),
        ("random:99999999999", "up to 2147483647"),
        ("random:0", "got an overlap of 0"),
    ],
)
def test_bad_settings(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        policy_named(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("then-serve", "has no settings, expected 1 to 2: write then-serve:SLOTS\\[:RHO\\]"),
        ("then-serve:x", "has slots 'x'"),
        ("then-serve:5:nan", "has rho 'nan', expected a number"),
        ("then-serve:0", "learning phase of 0 slots"),
        ("known:3", "unknown|known"),
    ],
)
def test_bad_learning(text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        learning_named(text)
