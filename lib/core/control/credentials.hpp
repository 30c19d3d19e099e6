// An engine's proof of identity to its peers, and the proof it takes from them: a secret that all
// of them have, or certificates of the same authorities. Control connections are TLS 1.3 then.
#pragma once

#include <openssl/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <weft/error.hpp>

namespace weft::core {

/// By their names in weft::Config.
struct CredentialFiles {
  std::string secret_file;
  std::string tls_certificate, tls_key, tls_authorities;
  bool tls_check_host = false;

  bool empty() const noexcept;
};

/// Whether the files that are named go together; they are not opened.
Result<void> check_credential_files(const CredentialFiles& files);

/// The two sides of a connection must use the same.
enum class Proving : std::uint8_t { secret, certificate };

class Credentials {
 public:
  using Key = std::array<unsigned char, 32>;

  /// Reads the files, of which there must be some.
  static Result<std::unique_ptr<Credentials>> load(const CredentialFiles& files);
  ~Credentials();
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  Proving proving() const noexcept { return proving_; }
  bool check_host() const noexcept { return check_host_; }
  SSL_CTX* context() const noexcept { return context_.get(); }
  /// Made of the secret.
  const Key& key() const noexcept { return key_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const noexcept;
  };

  Credentials() = default;
  Result<void> use_secret(const CredentialFiles& files);
  Result<void> use_certificates(const CredentialFiles& files);

  Proving proving_ = Proving::secret;
  bool check_host_ = false;
  std::unique_ptr<SSL_CTX, Free> context_;
  Key key_{};
};

}  // namespace weft::core
