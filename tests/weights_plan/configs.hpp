// The keys of some models' config.json that bear on their weights, from the Hugging Face hub.
#pragma once

namespace weft::weights::test {

constexpr const char* llama_8b =
    R"({"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,
        "num_attention_heads":32,"num_key_value_heads":8,"vocab_size":128256,
        "tie_word_embeddings":false,"torch_dtype":"bfloat16","attention_bias":false,
        "mlp_bias":false})";

constexpr const char* qwen3_8b =
    R"({"model_type":"qwen3","hidden_size":4096,"intermediate_size":12288,"num_hidden_layers":36,
        "num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":151936,
        "tie_word_embeddings":false,"torch_dtype":"bfloat16","attention_bias":false})";

constexpr const char* qwen3_30b =
    R"({"model_type":"qwen3_moe","hidden_size":2048,"intermediate_size":6144,
        "moe_intermediate_size":768,"num_experts":128,"num_hidden_layers":48,
        "num_attention_heads":32,"num_key_value_heads":4,"head_dim":128,"vocab_size":151936,
        "decoder_sparse_step":1,"mlp_only_layers":[],"tie_word_embeddings":false,
        "torch_dtype":"bfloat16","attention_bias":false})";

constexpr const char* deepseek_v3 =
    R"({"model_type":"deepseek_v3","hidden_size":7168,"intermediate_size":18432,
        "moe_intermediate_size":2048,"n_routed_experts":256,"n_shared_experts":1,
        "first_k_dense_replace":3,"moe_layer_freq":1,"num_hidden_layers":61,
        "num_attention_heads":128,"num_key_value_heads":128,"q_lora_rank":1536,"kv_lora_rank":512,
        "qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":129280,
        "tie_word_embeddings":false,"torch_dtype":"bfloat16","attention_bias":false,
        "quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})";

constexpr const char* kimi_k2 =
    R"({"model_type":"kimi_k2","hidden_size":7168,"intermediate_size":18432,
        "moe_intermediate_size":2048,"n_routed_experts":384,"n_shared_experts":1,
        "first_k_dense_replace":1,"moe_layer_freq":1,"num_hidden_layers":61,
        "num_attention_heads":64,"num_key_value_heads":64,"q_lora_rank":1536,"kv_lora_rank":512,
        "qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":163840,
        "tie_word_embeddings":false,"torch_dtype":"bfloat16","attention_bias":false,
        "quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})";

// Made up.

constexpr const char* tiny_qwen2 =
    R"({"model_type":"qwen2","hidden_size":24,"intermediate_size":20,"num_hidden_layers":3,
        "num_attention_heads":4,"num_key_value_heads":2,"head_dim":5,"vocab_size":61,
        "tie_word_embeddings":true})";

constexpr const char* tiny_moe =
    R"({"model_type":"qwen3_moe","hidden_size":16,"moe_intermediate_size":12,"num_experts":10,
        "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":4,
        "vocab_size":37})";

constexpr const char* tiny_deepseek =
    R"({"model_type":"deepseek_v3","hidden_size":16,"intermediate_size":32,
        "moe_intermediate_size":16,"n_routed_experts":8,"n_shared_experts":1,
        "first_k_dense_replace":1,"num_hidden_layers":2,"num_attention_heads":4,"q_lora_rank":8,
        "kv_lora_rank":8,"qk_nope_head_dim":4,"qk_rope_head_dim":4,"v_head_dim":4,"vocab_size":40,
        "quantization_config":{"quant_method":"fp8","weight_block_size":[4,4]}})";

}  // namespace weft::weights::test
