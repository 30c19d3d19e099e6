#include "control/credentials.hpp"

#include <fmt/core.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <string_view>

#include "control/openssl.hpp"
#include "control/private_file.hpp"
#include "control/tls.hpp"

namespace weft::core {
namespace {

constexpr std::size_t shortest_secret = 16;
/// Binds the key to its use: the same secret makes another key elsewhere.
constexpr std::string_view key_label = "weft control connection, pre-shared key, version 1";
/// Those with the key's hash.
constexpr const char* suites_of_secret = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

std::string reason() {
  const char* text = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return text != nullptr ? text : "OpenSSL does not say why";
}

/// Wipes a text when it goes.
class Wiped {
 public:
  explicit Wiped(std::string& text) : text_(text) {}
  ~Wiped() { OPENSSL_cleanse(text_.data(), text_.size()); }
  Wiped(const Wiped&) = delete;
  Wiped& operator=(const Wiped&) = delete;

 private:
  std::string& text_;
};

/// HKDF with SHA-256. It does not stretch: what can be guessed can be tried.
bool derive(std::string_view secret, Credentials::Key& key) {
  const Owned<EVP_KDF, EVP_KDF_free> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const Owned<EVP_KDF_CTX, EVP_KDF_CTX_free> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  if (!context) return false;
  char digest[] = "SHA256";
  const auto octets = [](const char* name, std::string_view text) {
    return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(text.data()), text.size());
  };
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
      octets(OSSL_KDF_PARAM_KEY, secret), octets(OSSL_KDF_PARAM_INFO, key_label),
      OSSL_PARAM_construct_end()};
  return EVP_KDF_derive(context.get(), key.data(), key.size(), parameters) == 1;
}

std::string_view without_line_end(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

/// For keys behind a passphrase: OpenSSL would ask for it at the terminal.
int no_passphrase(char*, int, int, void*) {
  return -1;
}

}  // namespace

bool CredentialFiles::empty() const noexcept {
  return secret_file.empty() && tls_certificate.empty() && tls_key.empty() &&
         tls_authorities.empty();
}

Result<void> check_credential_files(const CredentialFiles& files) {
  const bool any =
      !files.tls_certificate.empty() || !files.tls_key.empty() || !files.tls_authorities.empty();
  const bool all =
      !files.tls_certificate.empty() && !files.tls_key.empty() && !files.tls_authorities.empty();
  if (any && !all)
    return fail(Code::invalid_argument,
                "tls_certificate, tls_key and tls_authorities go together: name all three or none");
  if (any && !files.secret_file.empty())
    return fail(Code::invalid_argument,
                "secret_file and tls_certificate are two ways to prove oneself: name one of them");
  if (files.tls_check_host && !any)
    return fail(Code::invalid_argument, "tls_check_host requires tls_certificate");
  return {};
}

void Credentials::Free::operator()(SSL_CTX* context) const noexcept {
  SSL_CTX_free(context);
}

Credentials::~Credentials() {
  OPENSSL_cleanse(key_.data(), key_.size());
}

Result<std::unique_ptr<Credentials>> Credentials::load(const CredentialFiles& files) {
  if (Result<void> checked = check_credential_files(files); !checked)
    return fail(std::move(checked.error()));
  ERR_clear_error();
  std::unique_ptr<Credentials> made(new Credentials);
  made->context_.reset(SSL_CTX_new(TLS_method()));
  if (!made->context_) return fail(Code::unavailable, "OpenSSL can't be used: " + reason());
  SSL_CTX* context = made->context_.get();
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);  // strangers shall cost little
  // Each connection proves itself anew.
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  Tls::prepare(context);
  Result<void> used =
      files.secret_file.empty() ? made->use_certificates(files) : made->use_secret(files);
  if (!used) return fail(std::move(used.error()));
  return made;
}

Result<void> Credentials::use_secret(const CredentialFiles& files) {
  Result<std::string> contents = read_private_file("secret_file", files.secret_file);
  if (!contents) return fail(std::move(contents.error()));
  const Wiped wiped(*contents);
  const std::string_view secret = without_line_end(*contents);
  if (secret.size() < shortest_secret)
    return fail(Code::invalid_argument,
                fmt::format("the secret in '{}' has {} bytes, and must have {} at least",
                            files.secret_file, secret.size(), shortest_secret));
  proving_ = Proving::secret;
  if (!derive(secret, key_) || SSL_CTX_set_ciphersuites(context_.get(), suites_of_secret) != 1)
    return fail(Code::unavailable, "OpenSSL can't make a key of the secret: " + reason());
  return {};
}

Result<void> Credentials::use_certificates(const CredentialFiles& files) {
  const auto refuse = [](const char* option, const std::string& path, const std::string& why) {
    return fail(Code::invalid_argument, fmt::format("{} '{}': {}", option, path, why));
  };
  SSL_CTX* context = context_.get();
  SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);  // what the file has, and no more
  if (SSL_CTX_use_certificate_chain_file(context, files.tls_certificate.c_str()) != 1)
    return refuse("tls_certificate", files.tls_certificate, reason());
  if (SSL_CTX_load_verify_locations(context, files.tls_authorities.c_str(), nullptr) != 1)
    return refuse("tls_authorities", files.tls_authorities, reason());

  Result<std::string> pem = read_private_file("tls_key", files.tls_key);
  if (!pem) return fail(std::move(pem.error()));
  const Wiped wiped(*pem);
  const Owned<BIO, BIO_free_all> text(BIO_new_mem_buf(pem->data(), static_cast<int>(pem->size())));
  const Owned<EVP_PKEY, EVP_PKEY_free> key(
      text ? PEM_read_bio_PrivateKey(text.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key)
    return refuse("tls_key", files.tls_key,
                  "holds no private key without a passphrase: " + reason());
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return refuse("tls_key", files.tls_key, reason());
  proving_ = Proving::certificate;
  check_host_ = files.tls_check_host;
  return {};
}

}  // namespace weft::core
