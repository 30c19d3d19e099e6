#include "kv/known_configs.hpp"

#include <array>

namespace weft::kv {

namespace {

// Source: the config.json that each model publishes under its id on the Hugging Face hub, with the
// keys that bear on its cache, as quoted by public tools that carry copies of those files: most of
// them ai-dynamo/aiconfigurator (model_configs, August 2026). What a file nests in "text_config"
// stands at the top here.
constexpr std::array<KnownConfig, 43> configs = {{
    {"Llama-3.1-8B", "meta-llama/Llama-3.1-8B",
     R"({"model_type":"llama","num_hidden_layers":32,"num_key_value_heads":8,)"
     R"("hidden_size":4096,"num_attention_heads":32})"},
    {"Llama-3.1-70B", "meta-llama/Llama-3.1-70B",
     R"({"model_type":"llama","num_hidden_layers":80,"num_key_value_heads":8,)"
     R"("hidden_size":8192,"num_attention_heads":64})"},
    {"Llama-3.1-405B", "meta-llama/Llama-3.1-405B",
     R"({"model_type":"llama","num_hidden_layers":126,"num_key_value_heads":8,)"
     R"("hidden_size":16384,"num_attention_heads":128})"},
    {"Llama-3.3-70B", "meta-llama/Llama-3.3-70B-Instruct",
     R"({"model_type":"llama","num_hidden_layers":80,"num_key_value_heads":8,)"
     R"("hidden_size":8192,"num_attention_heads":64})"},
    {"Llama-4-Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct",
     R"({"model_type":"llama4_text","num_hidden_layers":48,"num_key_value_heads":8,)"
     R"("head_dim":128,"attention_chunk_size":8192})"},
    {"Llama-4-Maverick", "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
     R"({"model_type":"llama4_text","num_hidden_layers":48,"num_key_value_heads":8,)"
     R"("head_dim":128,"attention_chunk_size":8192})"},
    {"Qwen3-8B", "Qwen/Qwen3-8B",
     R"({"model_type":"qwen3","num_hidden_layers":36,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"Qwen3-32B", "Qwen/Qwen3-32B",
     R"({"model_type":"qwen3","num_hidden_layers":64,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B",
     R"({"model_type":"qwen3_moe","num_hidden_layers":48,"num_key_value_heads":4,)"
     R"("head_dim":128})"},
    {"Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B",
     R"({"model_type":"qwen3_moe","num_hidden_layers":94,"num_key_value_heads":4,)"
     R"("head_dim":128})"},
    {"Qwen3-Coder-480B-A35B", "Qwen/Qwen3-Coder-480B-A35B-Instruct",
     R"({"model_type":"qwen3_moe","num_hidden_layers":62,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"Qwen3-Next-80B-A3B", "Qwen/Qwen3-Next-80B-A3B-Thinking",
     R"({"model_type":"qwen3_next","num_hidden_layers":48,"num_key_value_heads":2,)"
     R"("head_dim":256,"full_attention_interval":4,"linear_num_key_heads":16,)"
     R"("linear_key_head_dim":128,"linear_num_value_heads":32,)"
     R"("linear_value_head_dim":128,"linear_conv_kernel_dim":4})"},
    {"Qwen3.5-27B", "Qwen/Qwen3.5-27B",
     R"({"model_type":"qwen3_5_text","num_hidden_layers":64,"num_key_value_heads":4,)"
     R"("head_dim":256,"full_attention_interval":4,"linear_num_key_heads":16,)"
     R"("linear_key_head_dim":128,"linear_num_value_heads":48,)"
     R"("linear_value_head_dim":128,"linear_conv_kernel_dim":4,)"
     R"("mamba_ssm_dtype":"float32"})"},
    {"Qwen3.5-35B-A3B", "Qwen/Qwen3.5-35B-A3B",
     R"({"model_type":"qwen3_5_moe_text","num_hidden_layers":40,"num_key_value_heads":2,)"
     R"("head_dim":256,"full_attention_interval":4,"linear_num_key_heads":16,)"
     R"("linear_key_head_dim":128,"linear_num_value_heads":32,)"
     R"("linear_value_head_dim":128,"linear_conv_kernel_dim":4,)"
     R"("mamba_ssm_dtype":"float32"})"},
    {"Qwen3.5-122B-A10B", "Qwen/Qwen3.5-122B-A10B",
     R"({"model_type":"qwen3_5_moe_text","num_hidden_layers":48,"num_key_value_heads":2,)"
     R"("head_dim":256,"full_attention_interval":4,"linear_num_key_heads":16,)"
     R"("linear_key_head_dim":128,"linear_num_value_heads":64,)"
     R"("linear_value_head_dim":128,"linear_conv_kernel_dim":4,)"
     R"("mamba_ssm_dtype":"float32"})"},
    {"Qwen3.5-397B-A17B", "Qwen/Qwen3.5-397B-A17B",
     R"({"model_type":"qwen3_5_moe_text","num_hidden_layers":60,"num_key_value_heads":2,)"
     R"("head_dim":256,"full_attention_interval":4,"linear_num_key_heads":16,)"
     R"("linear_key_head_dim":128,"linear_num_value_heads":64,)"
     R"("linear_value_head_dim":128,"linear_conv_kernel_dim":4,)"
     R"("mamba_ssm_dtype":"float32"})"},
    {"DeepSeek-V3", "deepseek-ai/DeepSeek-V3",
     R"({"model_type":"deepseek_v3","num_hidden_layers":61,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64})"},
    {"DeepSeek-R1", "deepseek-ai/DeepSeek-R1",
     R"({"model_type":"deepseek_v3","num_hidden_layers":61,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64})"},
    {"DeepSeek-V3.2", "deepseek-ai/DeepSeek-V3.2",
     R"({"model_type":"deepseek_v32","num_hidden_layers":61,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64,"index_head_dim":128})"},
    {"Kimi-K2", "moonshotai/Kimi-K2-Instruct",
     R"({"model_type":"kimi_k2","num_hidden_layers":61,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64})"},
    {"Kimi-K2.5", "moonshotai/Kimi-K2.5",
     R"({"model_type":"kimi_k2","num_hidden_layers":61,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64})"},
    {"GLM-4.5-Air", "zai-org/GLM-4.5-Air",
     R"({"model_type":"glm4_moe","num_hidden_layers":46,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"GLM-4.7", "zai-org/GLM-4.7-FP8",
     R"({"model_type":"glm4_moe","num_hidden_layers":92,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"GLM-5", "zai-org/GLM-5",
     R"({"model_type":"glm_moe_dsa","num_hidden_layers":78,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64,"index_head_dim":128})"},
    {"GLM-5.1", "zai-org/GLM-5.1",
     R"({"model_type":"glm_moe_dsa","num_hidden_layers":78,"kv_lora_rank":512,)"
     R"("qk_rope_head_dim":64,"index_head_dim":128})"},
    {"MiniMax-M2.5", "MiniMaxAI/MiniMax-M2.5",
     R"({"model_type":"minimax_m2","num_hidden_layers":62,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"MiniMax-M2.7", "MiniMaxAI/MiniMax-M2.7",
     R"({"model_type":"minimax_m2","num_hidden_layers":62,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"Mixtral-8x7B", "mistralai/Mixtral-8x7B-v0.1",
     R"({"model_type":"mixtral","num_hidden_layers":32,"num_key_value_heads":8,)"
     R"("hidden_size":4096,"num_attention_heads":32})"},
    {"Mixtral-8x22B", "mistralai/Mixtral-8x22B-v0.1",
     R"({"model_type":"mixtral","num_hidden_layers":56,"num_key_value_heads":8,)"
     R"("hidden_size":6144,"num_attention_heads":48})"},
    {"Mistral-7B-Instruct-v0.2", "mistralai/Mistral-7B-Instruct-v0.2",
     R"({"model_type":"mistral","num_hidden_layers":32,"num_key_value_heads":8,)"
     R"("hidden_size":4096,"num_attention_heads":32})"},
    {"Mistral-Small-3.2-24B", "mistralai/Mistral-Small-3.2-24B-Instruct-2506",
     R"({"model_type":"mistral","num_hidden_layers":40,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"Devstral-Small-2-24B", "mistralai/Devstral-Small-2-24B-Instruct-2512",
     R"({"model_type":"ministral3","num_hidden_layers":40,"num_key_value_heads":8,)"
     R"("head_dim":128})"},
    {"Gemma-3-27B", "google/gemma-3-27b-it",
     R"({"model_type":"gemma3_text","num_hidden_layers":62,"num_key_value_heads":16,)"
     R"("head_dim":128,"sliding_window":1024,"sliding_window_pattern":6})"},
    {"MiMo-V2-Flash", "XiaomiMiMo/MiMo-V2-Flash",
     R"({"model_type":"mimo_v2_flash","num_hidden_layers":48,"num_key_value_heads":4,)"
     R"("head_dim":192,"v_head_dim":128,"swa_num_key_value_heads":8,"swa_head_dim":192,)"
     R"("swa_v_head_dim":128,"sliding_window":128,"hybrid_layer_pattern":[0,1,1,1,1,0,1,)"
     R"(1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,0,1,1,1,1,1,)"
     R"(0]})"},
    {"GPT-OSS-20B", "openai/gpt-oss-20b",
     R"({"model_type":"gpt_oss","num_hidden_layers":24,"num_key_value_heads":8,)"
     R"("head_dim":64,"sliding_window":128,"layer_types":["sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention"]})"},
    {"GPT-OSS-120B", "openai/gpt-oss-120b",
     R"({"model_type":"gpt_oss","num_hidden_layers":36,"num_key_value_heads":8,)"
     R"("head_dim":64,"sliding_window":128,"layer_types":["sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention","sliding_attention",)"
     R"("full_attention","sliding_attention","full_attention"]})"},
    {"Nemotron-H-56B", "nvidia/Nemotron-H-56B-Base-8K",
     R"({"model_type":"nemotron_h",)"
     R"("hybrid_override_pattern":"M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-)"
     R"(M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",)"
     R"("num_key_value_heads":8,"attention_head_dim":128,"mamba_num_heads":256,)"
     R"("mamba_head_dim":64,"n_groups":8,"ssm_state_size":256,"conv_kernel":4})"},
    {"Nemotron-3-Nano", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
     R"({"model_type":"nemotron_h",)"
     R"("hybrid_override_pattern":"MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME")"
     R"(,"num_key_value_heads":2,"head_dim":128,"mamba_num_heads":64,)"
     R"("mamba_head_dim":64,"n_groups":8,"ssm_state_size":128,"conv_kernel":4,)"
     R"("mamba_ssm_cache_dtype":"float32"})"},
    {"Nemotron-3-Super", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8",
     R"({"model_type":"nemotron_h",)"
     R"("hybrid_override_pattern":"MEMEMEM*EMEMEMEM*EMEMEMEM*EMEMEMEMEM*EMEMEMEMEM*EMEME)"
     R"(MEMEM*EMEMEMEMEM*EMEMEMEM*EMEMEMEME","num_key_value_heads":2,"head_dim":128,)"
     R"("mamba_num_heads":128,"mamba_head_dim":64,"n_groups":8,"ssm_state_size":128,)"
     R"("conv_kernel":4,"mamba_ssm_cache_dtype":"float32"})"},
    {"Granite-3.1-2B", "ibm-granite/granite-3.1-2b-base",
     R"({"model_type":"granite","num_hidden_layers":40,"num_key_value_heads":8,)"
     R"("hidden_size":2048,"num_attention_heads":32})"},
    {"Granite-3.1-8B", "ibm-granite/granite-3.1-8b-base",
     R"({"model_type":"granite","num_hidden_layers":40,"num_key_value_heads":8,)"
     R"("hidden_size":4096,"num_attention_heads":32})"},
    {"Granite-4.0-H-Tiny", "ibm-granite/granite-4.0-h-tiny",
     R"({"model_type":"granitemoehybrid","num_hidden_layers":40,"hidden_size":1536,)"
     R"("num_attention_heads":12,"num_key_value_heads":4,"mamba_d_state":128,)"
     R"("mamba_n_groups":1,"mamba_n_heads":48,"mamba_d_head":64,"mamba_d_conv":4,)"
     R"("layer_types":["mamba","mamba","mamba","mamba","mamba","attention","mamba",)"
     R"("mamba","mamba","mamba","mamba","mamba","mamba","mamba","mamba","attention",)"
     R"("mamba","mamba","mamba","mamba","mamba","mamba","mamba","mamba","mamba",)"
     R"("attention","mamba","mamba","mamba","mamba","mamba","mamba","mamba","mamba",)"
     R"("mamba","attention","mamba","mamba","mamba","mamba"]})"},
    {"Jamba-v0.1", "ai21labs/Jamba-v0.1",
     R"({"model_type":"jamba","num_hidden_layers":32,"hidden_size":4096,)"
     R"("num_attention_heads":32,"num_key_value_heads":8,"attn_layer_offset":4,)"
     R"("attn_layer_period":8,"mamba_d_conv":4,"mamba_d_state":16,"mamba_expand":2})"},
}};

}  // namespace

std::span<const KnownConfig> known_configs() noexcept {
  return configs;
}

}  // namespace weft::kv
