"""What a Weft engine has counted, asked over HTTP."""

import json
import urllib.request
from collections import Counter

SECONDS = 10


class Counters:
    """As of now."""

    def __init__(self, address):
        with urllib.request.urlopen(f"http://{address}/snapshot", timeout=SECONDS) as answer:
            self.metrics = json.load(answer)["metrics"]

    def sum(self, name, **labels):
        return sum(each["value"] for each in self.metrics.get(name, {"samples": []})["samples"]
                   if labels.items() <= each["labels"].items())

    def moved(self, direction):
        """Bytes that transfers begun here have carried."""
        return int(self.sum("weft_transfer_bytes_total", direction=direction))

    def by_rail(self):
        """Bytes by provider and NIC, which may have several rails; those of messages included."""
        found = Counter()
        for each in self.metrics["weft_rail_bytes_total"]["samples"]:
            labels = each["labels"]
            found[labels["provider"], labels["domain"]] += int(each["value"])
        return found

    def under_way(self):
        return int(self.sum("weft_transfers_active"))
