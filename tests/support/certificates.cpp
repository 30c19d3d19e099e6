#include "certificates.hpp"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <utility>

#include "control/openssl.hpp"

namespace weft::test {

using core::Owned;

struct Made {
  Owned<X509, X509_free> certificate;
  Owned<EVP_PKEY, EVP_PKEY_free> key;
};

namespace {

constexpr long day = 24 * 60 * 60;

void add_extension(X509* certificate, int kind, const std::string& value) {
  const Owned<X509_EXTENSION, X509_EXTENSION_free> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str()));
  if (X509_add_ext(certificate, extension.get(), -1) != 1) throw std::runtime_error(value);
}

std::string text_of(BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  return {text, static_cast<std::size_t>(size)};
}

std::string pem_of(X509* certificate) {
  const Owned<BIO, BIO_free_all> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(out.get(), certificate);
  return text_of(out.get());
}

/// In the clear without a passphrase.
std::string pem_of(EVP_PKEY* key, const std::string& passphrase = "") {
  const Owned<BIO, BIO_free_all> out(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(out.get(), key, passphrase.empty() ? nullptr : EVP_aes_128_cbc(),
                           reinterpret_cast<const unsigned char*>(passphrase.data()),
                           static_cast<int>(passphrase.size()), nullptr, nullptr);
  return text_of(out.get());
}

/// Not signed yet.
Made begin(const std::string& name, bool expired) {
  Made made{Owned<X509, X509_free>(X509_new()),
            Owned<EVP_PKEY, EVP_PKEY_free>(EVP_EC_gen("P-256"))};
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1 + std::rand());
  X509_gmtime_adj(X509_getm_notBefore(certificate), -2 * day);
  X509_gmtime_adj(X509_getm_notAfter(certificate), expired ? -day : day);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_pubkey(certificate, made.key.get());
  return made;
}

void sign(X509* certificate, X509* issuer, EVP_PKEY* key) {
  X509_set_issuer_name(certificate, X509_get_subject_name(issuer));
  if (X509_sign(certificate, key, EVP_sha256()) == 0) throw std::runtime_error("no signature");
}

}  // namespace

struct Authority::Pair : Made {};

Authority::Authority(const Folder& folder, std::string name)
    : folder_(folder), name_(std::move(name)), own_(new Pair{begin(name_, false)}) {
  add_extension(own_->certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
  sign(own_->certificate.get(), own_->certificate.get(), own_->key.get());
  folder_.write(name_ + ".pem", pem_of(own_->certificate.get()));
}

Authority::~Authority() = default;

CertificateFiles Authority::issue(const std::string& name, const std::string& host,
                                  bool expired) const {
  const Made made = begin(name, expired);
  add_extension(made.certificate.get(), NID_subject_alt_name,
                host.empty() ? "DNS:localhost,IP:127.0.0.1" : "DNS:" + host);
  sign(made.certificate.get(), own_->certificate.get(), own_->key.get());
  const std::string stem = name_ + "-" + name;
  return {folder_.write(stem + ".pem", pem_of(made.certificate.get())),
          folder_.write(stem + ".key", pem_of(made.key.get())), folder_.at(name_ + ".pem")};
}

std::string lock(const Folder& folder, const std::string& key, const std::string& passphrase) {
  const Owned<BIO, BIO_free_all> in(BIO_new_file(key.c_str(), "r"));
  const Owned<EVP_PKEY, EVP_PKEY_free> read(
      PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  return folder.write("locked.key", pem_of(read.get(), passphrase));
}

}  // namespace weft::test
