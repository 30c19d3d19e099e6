"""New weights for a running engine: what is tested, and the trainer that sends them."""

import contextlib
import json
import time

from cases import check, prompt_of, request
from engines import ANSWER_SECONDS, HERE, START_SECONDS, Engine, environment_of, running
from models import VERSIONS
from ports import free_port
from processes import Child

PROMPTS = tuple(prompt_of(length, 7) for length in (17, 65, 200, 1000))
STEPS = 3
MEANWHILE_TOKENS = 600  # Of a request that runs while weights come, and when they are loaded.
STEP_SECONDS = 300


def asked(engine):
    """The tokens of all prompts."""
    return [engine.generate([request(prompt)])[0]["tokens"] for prompt in PROMPTS]


def fresh_loads(site, tell):
    """The tokens of engines that load each version from its files."""
    # Three of vLLM's processes each would take long to start.
    engines = [Engine(site, "alone", model=version, one_process=True) for version in VERSIONS]
    with running(engines):
        tokens = [asked(engine) for engine in engines]
    check(len({json.dumps(each) for each in tokens}) == len(VERSIONS),
          "some versions of the weights give the same tokens")
    tell(f"{len(VERSIONS)} versions give different tokens")
    return tokens


class Trainer(Child):
    """A trainer's process. What it asks of vLLM goes to `node`."""

    def __init__(self, site, fabric, node):
        self.address, self.node, self.site = f"127.0.0.1:{free_port()}", node, site
        super().__init__(
            [site.python, str(HERE / "update_trainer.py"), self.address,
             str(site.folder / VERSIONS[0])],
            environment_of(site, fabric.variables, with_package=True))
        self.name = "trainer"
        self.serve_until("ready", START_SECONDS)

    def begin(self, version):
        self.tell("send", model=str(self.site.folder / VERSIONS[version]))

    def serve_until(self, what, seconds=STEP_SECONDS):
        """Until it says that, or asks for it: then what it has asked for is not answered."""
        until = time.monotonic() + seconds
        while True:
            said = json.loads(self.line(until))
            if what in said or said.get("call") == what:
                return said
            check("call" in said, f"the trainer says {said}")
            self.pass_on(said)

    def pass_on(self, said):
        self.node.begin("call", method=said["call"], arguments=said["arguments"])
        self.process.stdin.write(json.dumps(self.node.reply(ANSWER_SECONDS)).encode() + b"\n")
        self.process.stdin.flush()


class Board:
    """An engine with the first version of the weights, and what each version should give."""

    def __init__(self, site, fabric, node, wanted):
        self.site, self.fabric, self.node, self.wanted = site, fabric, node, wanted
        self.now = 0

    @contextlib.contextmanager
    def trainer(self):
        trainer = Trainer(self.site, self.fabric, self.node)
        try:
            yield trainer
        finally:
            trainer.end()

    def check_tokens(self, when):
        tokens = asked(self.node)
        of = [number for number, wanted in enumerate(self.wanted) if wanted == tokens]
        check(of == [self.now], f"{when}: the tokens are those of version {of}, not {self.now}")

    def send(self, trainer, version):
        """While a request runs. No token changes before vLLM is asked to load."""
        self.node.begin("begin", requests=[request(prompt_of(40), tokens=MEANWHILE_TOKENS)])
        check(self.node.answer() is None, "it does not begin")
        trainer.begin(version)
        said = trainer.serve_until("start_weight_update")
        self.check_tokens("all bytes are there")
        trainer.pass_on(said)
        trainer.serve_until("sent")
        self.now = version
        self.check_tokens("loaded")
        self.node.begin("running")  # vLLM answers in order: it had not ended before these.
        check(self.node.answer() == 1, "the request ended before the new weights were loaded")
        self.node.begin("collect")
        answer = self.node.answer()[0]
        check(len(answer["tokens"]) == MEANWHILE_TOKENS, f"a request ended with {answer['ended']}")


def updates(board):
    board.check_tokens("before")
    with board.trainer() as trainer:
        for version in range(1, STEPS + 1):
            board.send(trainer, version)
    board.check_tokens("the trainer is gone")
    return f"{STEPS} steps gave the tokens of fresh loads, while a request ran"


def trainer_killed(board):
    other = (board.now + 1) % len(board.wanted)
    with board.trainer() as trainer:
        trainer.tell("drop")
        trainer.begin(other)
        trainer.serve_until("dropped")
    board.check_tokens("the trainer was killed in the midst of a step")
    with board.trainer() as trainer:
        trainer.begin(other)
        trainer.serve_until("start_weight_update")
    board.check_tokens("the trainer was killed when all bytes were there")
    with board.trainer() as trainer:
        board.send(trainer, other)
    return "killed twice, and the tokens stayed; another trainer's weights came"
