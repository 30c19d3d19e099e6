"""Stands in for torch, which NIXL up to 1.3 imports to compare types with; nothing here is one."""


class Tensor:
    pass
