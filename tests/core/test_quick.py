"""Values that are made quickly are the same frozen values, and only the right form is taken."""

import copy
import dataclasses
import pickle
from dataclasses import dataclass, field

import pytest

from fencekit.core.quick import quickly_made


@quickly_made
@dataclass(frozen=True, slots=True)
class Quick:
    """A value with every kind of field that is taken."""

    name: str
    count: int = 3
    hidden: int = field(default=0, compare=False)
    derived: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "derived", self.name * self.count)


def test_it_is_of_its_own_class_and_holds_what_was_given():
    value = Quick("a", count=2, hidden=9)
    assert type(value) is Quick
    assert (value.name, value.count, value.hidden, value.derived) == ("a", 2, 9, "aa")
    assert Quick("a") == Quick("a", 3, hidden=1) != Quick("b")
    assert hash(Quick("a")) == hash(Quick("a", 3))
    assert repr(Quick("a")) == "Quick(name='a', count=3, hidden=0)"


def test_it_never_changes_once_it_is_made():
    value = Quick("a")
    for change in (lambda: setattr(value, "name", "b"), lambda: delattr(value, "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            change()
    with pytest.raises((AttributeError, TypeError)):
        value.another = 1
    assert value == Quick("a")


def test_wrong_arguments_are_refused():
    for wrong in (Quick, lambda: Quick("a", 1, 2, 3), lambda: Quick("a", nobody=1)):
        with pytest.raises(TypeError):
            wrong()


def test_it_is_replaced_copied_and_pickled_as_any_dataclass():
    value = Quick("a", 2, 5)
    assert dataclasses.replace(value, name="b") == Quick("b", 2)
    for twin in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert type(twin) is Quick
        assert twin == value
        assert twin.derived == "aa"


def test_another_form_is_refused():
    @dataclass(frozen=True, slots=True)
    class Derived(Quick):
        more: int = 0

    @dataclass(frozen=True, slots=True)
    class Named:
        name: str = field(kw_only=True)

    for kind in (Derived, Named):
        with pytest.raises(TypeError, match=kind.__name__):
            quickly_made(kind)


def test_a_field_may_have_any_name():
    @quickly_made
    @dataclass(frozen=True, slots=True)
    class Named:
        open: int
        draft: int
        kind: int

    assert dataclasses.astuple(Named(1, 2, 3)) == (1, 2, 3)
