"""What a vLLM worker can do besides its own: change the KV cache behind the server's back."""


class Overwriting:
    """vLLM adds this to its worker (worker_extension_cls)."""

    def overwrite_kv_cache(self, value):
        """The bytes that were overwritten. One number for all: wherever a request's blocks lie,
        they hold the same."""
        caches = self.model_runner.kv_caches
        for cache in caches:
            cache.fill_(value)
        return sum(cache.numel() * cache.element_size() for cache in caches)
