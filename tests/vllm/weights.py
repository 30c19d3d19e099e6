"""Writes random weights beside a model's config.json, in a Python that has vLLM.

Usage: weights.py FOLDER...

vLLM's own ("dummy") are so small that attention would add nothing to what a token is: the tokens
that come out would be the same whatever the KV cache holds.
The seed is the number at the end of the folder's name, or 1.
"""

import re
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM

for folder in sys.argv[1:]:
    torch.manual_seed(int((re.findall(r"-(\d+)$", folder) or [1])[0]))
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    model.to(torch.float32).save_pretrained(folder)
