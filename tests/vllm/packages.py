"""The Python package of a build, as it is when a wheel is installed: with its entry points."""

import tomllib


def installed(package, project, folder):
    """What PYTHONPATH needs; `project`: its pyproject.toml. The package stays where it is, since it
    looks for its library from there."""
    place = folder / "package"
    info = place / "weft_transfer-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: weft-transfer\nVersion: 0\n")
    groups = tomllib.loads(project.read_text())["project"]["entry-points"]
    (info / "entry_points.txt").write_text("".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in groups.items()))
    return f"{package.parent}:{place}"
