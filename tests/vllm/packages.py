"""The Python package of a build, as it is when a wheel is installed: with its entry points."""

import tomllib

from processes import ROOT


def installed(package, folder):
    """A folder for PYTHONPATH."""
    place = folder / "package"
    info = place / "weft_transfer-0.dist-info"
    info.mkdir(parents=True)
    (place / "weft").symlink_to(package)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-transfer\nVersion: 0\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    (info / "entry_points.txt").write_text("".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()))
    return str(place)
