"""Whether the package is whole: the index has another distribution whose package is `weft`, too."""

from __future__ import annotations

import os
from importlib.util import find_spec

_ADVICE = "uninstall both weft and weft-transfer, then install weft-transfer"


def check() -> None:
    """Raises ImportError where two distributions lie in one folder, or the extension is missing."""
    package = os.path.dirname(os.path.abspath(__file__))
    try:
        neighbours = os.listdir(os.path.dirname(package))
    except OSError:  # The package comes from no folder.
        neighbours = []
    for name in neighbours:
        if name.lower().startswith("weft-") and name.endswith((".dist-info", ".egg-info")):
            raise ImportError(
                f"{package} has files of two distributions, weft-transfer and another one that is "
                f"named weft ({name}): {_ADVICE}"
            )
    if find_spec("weft._weft") is None:
        raise ImportError(
            f"{package} lacks its extension module, weft._weft, for this Python. If a distribution "
            f"that is named weft was installed beside weft-transfer, {_ADVICE}"
        )
