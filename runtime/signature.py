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


_OF_COMPILED_KERNELS = ("target", "metadata")


def checked_by(
    check: Callable[Arguments, Call],
) -> Callable[[Callable[[Call], Result]], Callable[Arguments, Result]]:
    """Make a function of a checked call one of the call's arguments, which `check` looks at first.

    The signature is written once, at `check`; help() and editors show it at the function too. It also takes
    `target` and `metadata`, so that it can stand in for a compiled operator, and does nothing with them.
    """

    def decorate(compute: Callable[[Call], Result]) -> Callable[Arguments, Result]:
        @functools.wraps(compute)
        def checked(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            for name in _OF_COMPILED_KERNELS:
                kwargs.pop(name, None)
            return compute(check(*args, **kwargs))

        signature = inspect.signature(check)
        returns = inspect.signature(compute).return_annotation
        keyword = inspect.Parameter.KEYWORD_ONLY
        extra = [inspect.Parameter(name, keyword, default=None) for name in _OF_COMPILED_KERNELS]
        checked.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*signature.parameters.values(), *extra], return_annotation=returns
        )
        return checked

    return decorate
