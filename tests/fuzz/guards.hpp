// The credentials that a fuzzed engine may have, by number: none, a secret, certificates.
#pragma once

#include <cstdint>

#include "certificates.hpp"
#include "control/credentials.hpp"

namespace weft::fuzz {

inline constexpr std::uint8_t guards = 3;

class Guards {
 public:
  core::CredentialFiles of(std::uint8_t guard) const {
    if (guard == 0) return {};
    if (guard == 1) return {.secret_file = secret_};
    return {.tls_certificate = files_.certificate,
            .tls_key = files_.key,
            .tls_authorities = files_.authorities};
  }

 private:
  const test::Folder folder_;
  const std::string secret_ = folder_.write("secret", "known to everybody who reads this");
  const test::Authority authority_{folder_, "authority"};
  const test::CertificateFiles files_ = authority_.issue("engine");
};

}  // namespace weft::fuzz
