"""For NIXL, which chooses between its own packages by it: of None it takes what is installed."""

cuda = None
