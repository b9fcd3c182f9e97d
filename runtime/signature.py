"""Functions that take the arguments of the checks in front of them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Call = TypeVar("Call")
Result = TypeVar("Result")


def named(name: str) -> Callable[[Callable[Arguments, Call]], Callable[Arguments, Call]]:
    """Give a function the name that users know: Python's errors on missing and unknown arguments show it."""

    def decorate(check: Callable[Arguments, Call]) -> Callable[Arguments, Call]:
        check.__qualname__ = name
        return check

    return decorate


def checked_by(
    check: Callable[Arguments, Call],
) -> Callable[[Callable[[Call], Result]], Callable[Arguments, Result]]:
    """Make a function of a checked call one of the call's arguments, which `check` looks at first.

    The signature is written once, at `check`; help() and editors show it at the function too.
    """

    def decorate(compute: Callable[[Call], Result]) -> Callable[Arguments, Result]:
        @functools.wraps(compute)
        def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            return compute(check(*args, **kwargs))

        signature = inspect.signature(check)
        returns = inspect.signature(compute).return_annotation
        checked.__signature__ = signature.replace(return_annotation=returns)  # type: ignore[attr-defined]
        return checked

    return decorate
