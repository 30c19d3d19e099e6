// Memory of GPUs that is mapped in parts (cuMemMap) is told of: nobody says when it is remapped.
#include <gmock/gmock.h>

#include "field.hpp"
#include "warnings.hpp"

namespace weft::test {
namespace {

TEST(Mapped, MemoryIsToldOfOnceForEachEngine) {
  Store store(0, chunk);
  Engine engine = must(Engine::open(gpu_config("tcp")));
  Warnings warnings;
  must(engine.add(store.memory()));
  EXPECT_THAT(warnings.lines(), testing::IsEmpty());
  ASSERT_TRUE(cuda_sim::weft_cuda_sim_map(reinterpret_cast<cuda_sim::Address>(store.address())));
  must(engine.add(store.memory()));
  must(engine.add(store.memory()));
  EXPECT_THAT(warnings.lines(),
              testing::ElementsAre(testing::HasSubstr("must not be unmapped or remapped")));
  EXPECT_EQ(cuda_sim::weft_cuda_sim_handles(), 0U);
}

}  // namespace
}  // namespace weft::test
