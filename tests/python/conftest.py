"""Every test has a minute and a half; one that hangs says where."""

from __future__ import annotations

import faulthandler
import sys
from collections.abc import Iterator

import pytest
from support import PROVIDERS, Pair, pair


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    faulthandler.dump_traceback_later(90, exit=True, file=sys.__stderr__)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(params=PROVIDERS)
def engines(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with pair(request.param) as both:
        yield both
