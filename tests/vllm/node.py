"""One vLLM engine, in a Python that has vLLM and NIXL.

Usage: node.py SETTINGS      as JSON: those of vLLM's EngineArgs

It reads commands as lines of JSON, answers each with one, and ends with its input:
  {"do": "generate", "requests": [{"name": ..., "prompt": [...], "tokens": N, "kv": ...}, ...]}
  {"do": "overwrite", "value": X}     fills the whole KV cache with one number
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

    def about(self):
        return {"block_size": self.engine.vllm_config.cache_config.block_size}

    def generate(self, requests):
        """All at once; the answers are in the order of the requests."""
        order = [self._add(**request) for request in requests]
        ended = {}
        while self.engine.has_unfinished_requests():
            for output in self.engine.step():
                if output.finished:
                    ended[output.request_id] = output
        return [self._answer(ended[name]) for name in order]

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

    def serve(self, answers):
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = {"answer": self._obey(**request)}
            except Exception as error:  # Whatever vLLM throws is told in a line.
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)

    def _obey(self, do, **arguments):
        return {"about": self.about, "generate": self.generate,
                "overwrite": self.overwrite}[do](**arguments)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # What vLLM prints goes to standard error.
    node = Node(json.loads(sys.argv[1]))
    node.serve(answers)
    node.engine.engine_core.shutdown()


if __name__ == "__main__":
    main()
