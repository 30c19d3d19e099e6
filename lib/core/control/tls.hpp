// TLS 1.3 on one control connection, between the bytes of its socket and those of the protocol. It
// does no input and output of its own, so that all bounds of a connection hold for it as well.
#pragma once

#include <openssl/types.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>
#include <weft/error.hpp>
#include <weft/place.hpp>

#include "control/credentials.hpp"

namespace weft::core {

class Tls {
 public:
  enum class Role : std::uint8_t { dials, accepts };

  /// `host`: the name or number that was dialled. `credentials` must outlive the connection.
  Tls(const Credentials& credentials, Role role, const std::string& host);
  Tls(const Tls&) = delete;  // OpenSSL knows its address
  Tls& operator=(const Tls&) = delete;

  /// Takes bytes from the socket (none: the first step of the side that dials) and appends what
  /// they hold of the protocol to `plain`. The error is the rest of a sentence about the other
  /// side: "has another secret".
  Result<void> receive(Bytes sealed, std::vector<std::byte>& plain);
  /// Seals bytes of the protocol, once established().
  void send(Bytes plain);
  /// The bytes that have to go to the socket now, by receive() or send(); after an error too.
  Blob take_output();
  /// Both sides' credentials are proven, as far as this side can know: the dialled one may still
  /// refuse those of the dialling one.
  bool established() const noexcept { return established_; }

  /// State that all connections share.
  static void prepare(SSL_CTX* context);
  /// Whether the bytes begin as TLS does, and not a protocol of text.
  static bool looks_like(Bytes start) noexcept;

 private:
  struct Free {
    void operator()(SSL* tls) const noexcept;
  };
  struct Callbacks;

  Result<bool> shake_hands();
  Result<void> open_records(std::vector<std::byte>& plain);
  Error refuse_plain(Bytes start);
  Error explain();
  Error explain_alert(int alert) const;
  Error explain_own(unsigned long error) const;

  const Credentials& credentials_;
  const Role role_;
  std::unique_ptr<SSL, Free> tls_;
  bool begun_ = false;  // bytes of the other side have come
  bool established_ = false;
  std::size_t records_ = 0;  // sealed since the key was new
  std::string refusal_;      // why a callback refused the other side
  Blob own_alert_;           // said without OpenSSL
};

}  // namespace weft::core
