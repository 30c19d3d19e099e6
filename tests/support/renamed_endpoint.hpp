// Rails whose records name a provider that nobody knows: the core must not decide by it.
#pragma once

namespace weft::test {

/// From here on all rails of this process have names of their own invention, if the environment
/// variable WEFT_TEST_RANDOM_NAMES is set and is not empty.
void rename_rails_if_asked();

}  // namespace weft::test
