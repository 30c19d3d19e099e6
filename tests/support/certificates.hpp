// Authorities and certificates that tests make for themselves.
#pragma once

#include <openssl/types.h>

#include <memory>
#include <string>

#include "folder.hpp"

namespace weft::test {

struct CertificateFiles {
  std::string certificate, key, authorities;
};

class Authority {
 public:
  /// Its files go into `folder`, which must outlive it.
  Authority(const Folder& folder, std::string name);
  ~Authority();

  /// A certificate for "localhost" and 127.0.0.1, or for `host` alone. Its time is over if
  /// `expired`.
  CertificateFiles issue(const std::string& name, const std::string& host = "",
                         bool expired = false) const;

 private:
  struct Pair;
  const Folder& folder_;
  const std::string name_;
  const std::unique_ptr<Pair> own_;
};

/// A copy of a key that takes a passphrase to read.
std::string lock(const Folder& folder, const std::string& key, const std::string& passphrase);

}  // namespace weft::test
