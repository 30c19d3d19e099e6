"""One vLLM engine, in a Python that has vLLM and NIXL.

Usage: node.py SETTINGS      as JSON: those of vLLM's EngineArgs

It reads commands as lines of JSON, answers each with one, and ends with its input:
  {"do": "generate", "requests": [{"name": ..., "prompt": [...], "tokens": N, "kv": ...}, ...]}
  {"do": "begin", "requests": [...]}  as generate, but answers at once; "collect" has the answers
  {"do": "running"}                   how many of those that were begun have not ended
  {"do": "abort", "names": [...]}     of those that were begun; "collect" has no answer of them
  {"do": "overwrite", "value": X}     fills the whole KV cache with one number
  {"do": "call", "method": NAME, "arguments": {...}}  of all workers
"""

import json
import os
import sys


class Node:
    def __init__(self, settings):
        from vllm.config import KVTransferConfig
        from vllm.engine.arg_utils import EngineArgs
        from vllm.v1.engine.llm_engine import LLMEngine
        if "kv_transfer_config" in settings:
            settings["kv_transfer_config"] = KVTransferConfig(**settings["kv_transfer_config"])
        self.engine = LLMEngine.from_engine_args(EngineArgs(**settings))
        self._begun, self._ended = [], {}

    def about(self):
        return {"block_size": self.engine.vllm_config.cache_config.block_size}

    def generate(self, requests):
        """All at once; the answers are in the order of the requests."""
        return self._answers_of([self._add(**request) for request in requests])

    def begin(self, requests):
        self._begun += [self._add(**request) for request in requests]

    def running(self):
        return sum(name not in self._ended for name in self._begun)

    def abort(self, names):
        self.engine.abort_request(names)
        self._begun = [name for name in self._begun if name not in names]

    def collect(self):
        begun, self._begun = self._begun, []
        return self._answers_of(begun)

    def _answers_of(self, names):
        while not all(name in self._ended for name in names):
            for output in self.engine.step():
                if output.finished:
                    self._ended[output.request_id] = output
        return [self._answer(self._ended.pop(name)) for name in names]

    def _add(self, name, prompt, tokens, kv):
        from vllm import SamplingParams
        extra = {"kv_transfer_params": kv} if kv else None
        self.engine.add_request(name, {"prompt_token_ids": prompt}, SamplingParams(
            max_tokens=tokens, temperature=0, ignore_eos=True, detokenize=False,
            extra_args=extra))
        return name

    def _answer(self, output):
        answer = output.outputs[0]
        return {"tokens": list(answer.token_ids), "ended": answer.finish_reason,
                "kv": output.kv_transfer_params}

    def overwrite(self, value):
        return sum(self.engine.collective_rpc("overwrite_kv_cache", args=(value,)))

    def call(self, method, arguments):
        self.engine.collective_rpc(method, kwargs=arguments)

    def serve(self, answers):
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"answer": self._obey(**request)}
            except Exception as error:  # Whatever vLLM throws is told in a line.
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)

    def _obey(self, do, **arguments):
        return {"about": self.about, "generate": self.generate, "begin": self.begin,
                "running": self.running, "collect": self.collect,
                "abort": self.abort, "overwrite": self.overwrite,
                "call": self.call}[do](**arguments)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What vLLM prints goes to standard error.
    node = Node(json.loads(sys.argv[1]))
    node.serve(answers)
    node.engine.engine_core.shutdown()


if __name__ == "__main__":
    main()
