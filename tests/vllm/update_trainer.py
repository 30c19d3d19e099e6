"""A trainer, in a Python that has vLLM: it brings new weights into a running engine by weft.vllm.

Usage: update_trainer.py ADDRESS MODEL

It says {"ready": true} once it has met vLLM, and then reads commands as lines of JSON:
  {"do": "send", "model": FOLDER}   brings the weights in there; answers {"sent": N}
  {"do": "drop"}                    from now on nothing that it writes arrives; it says
                                    {"dropped": true} when the first write is lost
What it asks of vLLM are lines {"call": METHOD, "arguments": {...}}. Each is answered by a line with
"answer" or "error".
"""

import json
import os
import sys
import threading
import time

import torch
from transformers import AutoModelForCausalLM
from vllm.distributed.weight_transfer import ModuleSource

import weft
from weft.vllm.trainer import Trainer, TrainerInfo

EACH_SECONDS = 0.001


class Lines:
    """The other side of standard input and output."""

    def __init__(self):
        self._answers = os.fdopen(os.dup(1), "w")
        self._lock = threading.Lock()
        os.dup2(2, 1)  # What else is printed goes to standard error.

    def say(self, **what):
        with self._lock:
            print(json.dumps(what), file=self._answers, flush=True)

    def hear(self):
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        return json.loads(line)


class Client:
    """vLLM, through whoever started this program."""

    def __init__(self, lines):
        self._lines = lines

    def _call(self, method, **arguments):
        self._lines.say(call=method, arguments=arguments)
        reply = self._lines.hear()
        if "error" in reply:
            raise RuntimeError(reply["error"])

    def init_weight_transfer_engine(self, init_info):
        self._call("init_weight_transfer_engine", init_info=init_info)

    def start_weight_update(self):
        self._call("start_weight_update")

    def update_weights(self, update_info):
        self._call("update_weights", update_info=update_info)

    def finish_weight_update(self, weight_version=None):
        self._call("finish_weight_update")


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)


def tell_of_loss(faults, lines):
    while faults.counts.dropped == 0:
        time.sleep(EACH_SECONDS)  # The switch has no event.
    lines.say(dropped=True)


def main():
    lines, faults = Lines(), weft.testing.Faults()
    address, folder = sys.argv[1:]
    weft.Engine = lambda **options: weft.testing.open(faults, **options)
    model = load(folder)
    trainer = Trainer.trainer_init(TrainerInfo(address, rank=0), client=Client(lines),
                                   source=ModuleSource(model))
    lines.say(ready=True)
    while True:
        command = lines.hear()
        if command["do"] == "drop":
            faults.set(drop=1)
            threading.Thread(target=tell_of_loss, args=(faults, lines), daemon=True).start()
            continue
        model.load_state_dict(load(command["model"]).state_dict())
        trainer.send_weights()
        lines.say(sent=trainer.step)


if __name__ == "__main__":
    main()
