"""Tiny models with random weights, and how many bytes of KV cache a token has in each."""

import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
VOCABULARY = 1024
LONGEST = 2048  # Tokens of a request, the answer's included.
WEIGHTS_SECONDS = 300

# In single precision: what decode computes otherwise than one engine alone (the last token of the
# prompt, once more) rounds too little to choose another token.
COMMON = {
    "vocab_size": VOCABULARY, "hidden_size": 256, "intermediate_size": 512,
    "num_hidden_layers": 4, "num_attention_heads": 8, "max_position_embeddings": 2 * LONGEST,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "dtype": "float32",
    "tie_word_embeddings": False, "bos_token_id": 1, "eos_token_id": 2,
    # Near 1 / sqrt(hidden_size), so that what attention adds weighs as much as the token itself.
    "initializer_range": 0.08}
LLAMA = {**COMMON, "architectures": ["LlamaForCausalLM"], "model_type": "llama",
         "num_key_value_heads": 4, "head_dim": 32}
MLA = {**COMMON, "architectures": ["DeepseekV2ForCausalLM"], "model_type": "deepseek_v2",
       "num_key_value_heads": 8, "q_lora_rank": None, "kv_lora_rank": 512,
       "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
       "first_k_dense_replace": 4, "n_routed_experts": 4, "moe_intermediate_size": 512,
       "n_shared_experts": 1, "num_experts_per_tok": 2}
# The same model with other weights.
VERSIONS = ("llama", "llama-2", "llama-3", "llama-4")
MODELS = {**{name: LLAMA for name in VERSIONS}, "mla": MLA}
BYTES = {"float32": 4, "bfloat16": 2}


def kv_bytes_of_token(model):
    """Of all layers: a key and a value for each head, or with MLA one latent vector for all."""
    if "kv_lora_rank" in model:
        numbers = model["kv_lora_rank"] + model["qk_rope_head_dim"]
    else:
        numbers = 2 * model["num_key_value_heads"] * model["head_dim"]
    return model["num_hidden_layers"] * numbers * BYTES[model["dtype"]]


def kv_bytes(model, tokens, block_size):
    """Whole blocks, the last of which may not be full."""
    blocks = -(-tokens // block_size)
    return blocks * block_size * kv_bytes_of_token(model)


def make(names, folder, python):
    """A folder for each, with weights that are the same every time."""
    places = [pathlib.Path(folder, name) for name in names]
    for name, place in zip(names, places):
        place.mkdir()
        (place / "config.json").write_text(json.dumps(MODELS[name]))
    subprocess.run([python, HERE / "weights.py", *places], check=True, timeout=WEIGHTS_SECONDS,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
