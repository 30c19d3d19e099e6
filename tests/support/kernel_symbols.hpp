#pragma once

namespace weft::test {

/// libfabric's verbs provider reads the kernel's whole list of symbols twice in each process that
/// asks for a fabric, whatever its provider (1.17, on the lookout for ib_umem_dmabuf_get), which
/// takes 0.1 to 0.2 s of a core. Tests start thousands of processes: from here on it finds an empty
/// one, which says what a kernel without support for GPUs' memory would.
void hide_kernel_symbols();

}  // namespace weft::test
