"""Writes random weights beside a model's config.json, in a Python that has vLLM.

Usage: weights.py FOLDER...

vLLM's own ("dummy") are so small that attention would add nothing to what a token is: the tokens
that come out would be the same whatever the KV cache holds.
"""

import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

for folder in sys.argv[1:]:
    torch.manual_seed(1)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    model.to(torch.float32).save_pretrained(folder)
