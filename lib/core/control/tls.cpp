#include "control/tls.hpp"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "control/openssl.hpp"
#include "control/preamble.hpp"

namespace weft::core {
namespace {

/// The key's name in a handshake: there is one key.
constexpr std::string_view key_name = "weft";
/// OpenSSL wants to know what a session belongs to.
constexpr std::string_view session_context = "weft";
/// A key seals this many records of a connection, and is followed by a new one: far below the
/// bound of AES-GCM (RFC 8446, 5.5), and rare enough to cost nothing.
constexpr std::size_t records_per_key = std::size_t{1} << 16;
constexpr std::size_t record_bytes = std::size_t{16} << 10;
/// TLS_AES_128_GCM_SHA256, which has the hash of the key.
constexpr unsigned char key_suite[] = {0x13, 0x01};

/// The protocol within TLS (ALPN), which tells the way of proving too: a certificate that the same
/// authorities made for another service is of no use here, and both sides learn what differs.
std::string_view protocol_of(Proving proving) {
  return proving == Proving::secret ? "weft-secret" : "weft-certificate";
}

std::string_view what_is_asked(Proving proving) {
  return proving == Proving::secret ? "a secret" : "a certificate";
}

/// As TLS writes a list of one protocol.
std::string listed(std::string_view protocol) {
  return static_cast<char>(protocol.size()) + std::string(protocol);
}

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::string_view text_of(const unsigned char* octets, std::size_t size) {
  return {reinterpret_cast<const char*>(octets), size};
}

Error another_secret() {
  return Error(Code::permission_denied, "has another secret than this engine");
}

/// A TLS session: the key of the secret, for one handshake. The caller frees it; null if
/// memory is lacking.
SSL_SESSION* new_session(SSL* tls, const Credentials::Key& key) {
  Owned<SSL_SESSION, SSL_SESSION_free> session(SSL_SESSION_new());
  const SSL_CIPHER* suite = SSL_CIPHER_find(tls, key_suite);
  if (!session || suite == nullptr ||
      SSL_SESSION_set1_master_key(session.get(), key.data(), key.size()) != 1 ||
      SSL_SESSION_set_cipher(session.get(), suite) != 1 ||
      SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1 ||
      SSL_SESSION_set1_id_context(session.get(), octets(session_context), session_context.size()) !=
          1)
    return nullptr;
  return session.release();
}

/// The alert for a plain engine: fatal, access denied.
Blob access_denied() {
  return {std::byte{SSL3_RT_ALERT},
          std::byte{3},
          std::byte{3},
          std::byte{0},
          std::byte{2},
          std::byte{SSL3_AL_FATAL},
          std::byte{SSL_AD_ACCESS_DENIED}};
}

}  // namespace

/// OpenSSL's, each for the connection whose handshake it is.
struct Tls::Callbacks {
  static Tls& of(SSL* tls) { return *static_cast<Tls*>(SSL_get_app_data(tls)); }

  /// Looks at the first words of a side that dials, before anything is done for it.
  static int client_hello(SSL* tls, int* alert, void*) {
    Tls& self = of(tls);
    const unsigned char* extension = nullptr;
    std::size_t size = 0;
    SSL_client_hello_get0_ext(tls, TLSEXT_TYPE_application_layer_protocol_negotiation, &extension,
                              &size);
    // Two bytes with the length of the list, and the list.
    const std::string_view asked = size > 2 ? text_of(extension + 2, size - 2) : "";
    const Proving ours = self.credentials_.proving();
    const Proving other = ours == Proving::secret ? Proving::certificate : Proving::secret;
    if (asked == listed(protocol_of(ours))) return SSL_CLIENT_HELLO_SUCCESS;
    self.refusal_ = asked == listed(protocol_of(other))
                        ? fmt::format("proves itself by {}, and this engine asks for {}",
                                      what_is_asked(other), what_is_asked(ours))
                        : "speaks TLS, but is no Weft engine with credentials";
    *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    return SSL_CLIENT_HELLO_ERROR;
  }

  static int choose_protocol(SSL* tls, const unsigned char** chosen, unsigned char* size,
                             const unsigned char*, unsigned, void*) {
    const std::string_view ours = protocol_of(of(tls).credentials_.proving());
    *chosen = octets(ours);
    *size = static_cast<unsigned char>(ours.size());
    return SSL_TLSEXT_ERR_OK;
  }

  /// The key with which the side that dials begins.
  static int offer_key(SSL* tls, const EVP_MD* digest, const unsigned char** name,
                       std::size_t* size, SSL_SESSION** session) {
    const Credentials& credentials = of(tls).credentials_;
    *session = nullptr;
    if (credentials.proving() != Proving::secret) return 1;
    if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 1;
    *name = octets(key_name);
    *size = key_name.size();
    *session = new_session(tls, credentials.key());
    return *session != nullptr ? 1 : 0;
  }

  /// The key that the side that dials says it has.
  static int find_key(SSL* tls, const unsigned char* name, std::size_t size,
                      SSL_SESSION** session) {
    const Credentials& credentials = of(tls).credentials_;
    *session = nullptr;
    if (credentials.proving() != Proving::secret || text_of(name, size) != key_name) return 1;
    *session = new_session(tls, credentials.key());
    return *session != nullptr ? 1 : 0;
  }
};

void Tls::prepare(SSL_CTX* context) {
  SSL_CTX_set_session_id_context(context, octets(session_context), session_context.size());
  SSL_CTX_set_client_hello_cb(context, Callbacks::client_hello, nullptr);
  SSL_CTX_set_alpn_select_cb(context, Callbacks::choose_protocol, nullptr);
  SSL_CTX_set_psk_use_session_callback(context, Callbacks::offer_key);
  SSL_CTX_set_psk_find_session_callback(context, Callbacks::find_key);
}

bool Tls::looks_like(Bytes start) noexcept {
  if (start.empty()) return false;
  const auto type = std::to_integer<int>(start[0]);
  return type >= SSL3_RT_CHANGE_CIPHER_SPEC && type <= SSL3_RT_APPLICATION_DATA &&
         (start.size() < 2 || std::to_integer<int>(start[1]) == SSL3_VERSION_MAJOR);
}

void Tls::Free::operator()(SSL* tls) const noexcept {
  SSL_free(tls);
}

Tls::Tls(const Credentials& credentials, Role role, const std::string& host)
    : credentials_(credentials), role_(role), tls_(SSL_new(credentials.context())) {
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  const std::string protocols = listed(protocol_of(credentials.proving()));
  bool ready = tls_ && in != nullptr && out != nullptr;
  if (ready) {
    SSL_set_bio(tls_.get(), in, out);
    SSL_set_app_data(tls_.get(), this);
    if (role == Role::dials)
      SSL_set_connect_state(tls_.get());
    else
      SSL_set_accept_state(tls_.get());
    ready = SSL_set_alpn_protos(tls_.get(), octets(protocols),
                                static_cast<unsigned>(protocols.size())) == 0;
  } else {
    BIO_free(in);
    BIO_free(out);
  }
  if (ready && role == Role::dials && credentials.check_host()) {
    SSL_set_hostflags(tls_.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    ready = SSL_set1_host(tls_.get(), host.c_str()) == 1;
  }
  if (!ready) tls_.reset();
}

// Receiving.

Result<void> Tls::receive(Bytes sealed, std::vector<std::byte>& plain) {
  if (!tls_) return fail(Code::out_of_memory, "gets no TLS connection: OpenSSL can't make one");
  if (!sealed.empty() && !std::exchange(begun_, true) && !looks_like(sealed))
    return fail(refuse_plain(sealed));
  ERR_clear_error();
  std::size_t written = 0;
  if (!sealed.empty() &&
      BIO_write_ex(SSL_get_rbio(tls_.get()), sealed.data(), sealed.size(), &written) != 1)
    return fail(explain());
  if (!established_) {
    Result<bool> shaken = shake_hands();
    if (!shaken) return fail(std::move(shaken.error()));
    established_ = *shaken;
  }
  return established_ ? open_records(plain) : Result<void>();
}

Error Tls::refuse_plain(Bytes start) {
  const std::string_view asked = what_is_asked(credentials_.proving());
  if (role_ == Role::accepts) own_alert_ = access_denied();
  if (start.size() >= preamble_size && read_preamble(start))
    return Error(
        Code::permission_denied,
        fmt::format("speaks Weft's protocol without TLS, and this engine asks for {}", asked));
  return Error(
      Code::protocol_mismatch,
      fmt::format("does not speak TLS, and this engine asks for {} (got {})", asked, quote(start)));
}

/// Whether the handshake is done.
Result<bool> Tls::shake_hands() {
  const int result = SSL_do_handshake(tls_.get());
  if (result != 1) {
    if (SSL_get_error(tls_.get(), result) == SSL_ERROR_WANT_READ) return false;
    return fail(explain());
  }
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(tls_.get(), &protocol, &size);
  if (text_of(protocol, size) != protocol_of(credentials_.proving()))
    return fail(Code::protocol_mismatch, "speaks TLS, but is no Weft engine");
  if (credentials_.proving() == Proving::secret && SSL_session_reused(tls_.get()) != 1)
    return fail(Code::permission_denied, "did not prove that it has the secret");
  return true;
}

Result<void> Tls::open_records(std::vector<std::byte>& plain) {
  for (;;) {
    const std::size_t before = plain.size();
    std::size_t got = 0;
    plain.resize(before + record_bytes);
    const int result = SSL_read_ex(tls_.get(), plain.data() + before, record_bytes, &got);
    plain.resize(before + got);
    if (result == 1) continue;
    const int error = SSL_get_error(tls_.get(), result);
    if (error == SSL_ERROR_WANT_READ) return {};
    if (error == SSL_ERROR_ZERO_RETURN)
      return fail(Code::peer_down, "closed the connection without a goodbye");
    return fail(explain());
  }
}

// Sending.

void Tls::send(Bytes plain) {
  if (!established_) return;
  ERR_clear_error();
  records_ += 1 + plain.size() / record_bytes;
  if (records_ >= records_per_key) {
    records_ = 0;
    SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
  }
  // Fails only after an error that receive() has told.
  std::size_t written = 0;
  SSL_write_ex(tls_.get(), plain.data(), plain.size(), &written);
}

Blob Tls::take_output() {
  Blob output = std::exchange(own_alert_, {});
  if (!tls_) return output;
  BIO* const out = SSL_get_wbio(tls_.get());
  const std::size_t before = output.size();
  std::size_t got = 0;
  output.resize(before + BIO_ctrl_pending(out));
  if (output.size() > before &&
      BIO_read_ex(out, output.data() + before, output.size() - before, &got) != 1)
    got = 0;
  output.resize(before + got);
  return output;
}

// The error.

Error Tls::explain() {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (!refusal_.empty()) return Error(Code::permission_denied, std::exchange(refusal_, {}));
  const int reason = ERR_GET_REASON(error);
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET)
    return explain_alert(reason - SSL_AD_REASON_OFFSET);
  return explain_own(error);
}

/// The other side ended it.
Error Tls::explain_alert(int alert) const {
  const Proving proving = credentials_.proving();
  const char* description = SSL_alert_desc_string_long(alert);
  switch (alert) {
    case SSL_AD_NO_APPLICATION_PROTOCOL:
      return Error(Code::permission_denied,
                   fmt::format("does not take {}, by which this engine proves itself",
                               what_is_asked(proving)));
    case SSL_AD_ILLEGAL_PARAMETER:
    case SSL_AD_DECRYPT_ERROR:
      if (proving == Proving::secret) return another_secret();
      break;
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case SSL_AD_CERTIFICATE_REQUIRED:
      return Error(Code::permission_denied,
                   fmt::format("does not take this engine's certificate: {}", description));
    default:
      break;
  }
  return Error(Code::protocol_mismatch, fmt::format("ended the TLS connection: {}", description));
}

/// This side ended it.
Error Tls::explain_own(unsigned long error) const {
  const Proving proving = credentials_.proving();
  switch (ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
      return another_secret();
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      if (proving == Proving::secret)
        return Error(Code::permission_denied,
                     "proves itself by a certificate, and this engine asks for a secret");
      return Error(Code::permission_denied,
                   fmt::format("has a certificate that this engine does not take: {}",
                               X509_verify_cert_error_string(SSL_get_verify_result(tls_.get()))));
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return Error(Code::permission_denied, "has no certificate, and this engine asks for one");
    default:
      break;
  }
  const char* reason = ERR_reason_error_string(error);
  return Error(Code::protocol_mismatch, fmt::format("does not keep to TLS 1.3: {}",
                                                    reason != nullptr ? reason : "unknown error"));
}

}  // namespace weft::core
