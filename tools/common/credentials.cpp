#include "common/credentials.hpp"

namespace weft::tool {

void add_credentials(CLI::App& command, Credentials& credentials) {
  const auto add_file = [&](const char* name, std::string& file, const char* text) {
    return command.add_option(name, file, text)->type_name("FILE")->group("Credentials");
  };
  add_file("--secret-file", credentials.secret_file,
           "Both sides prove that they have the secret in this file, 16 bytes at least; then "
           "--listen may lie beyond loopback");
  CLI::Option* certificate =
      add_file("--tls-certificate", credentials.tls_certificate,
               "Both sides prove themselves by certificates instead: this side's, as PEM");
  CLI::Option* key = add_file("--tls-key", credentials.tls_key, "Its key");
  CLI::Option* authorities = add_file("--tls-authorities", credentials.tls_authorities,
                                      "The authorities whose certificates are taken");
  certificate->needs(key, authorities);
  key->needs(certificate);
  authorities->needs(certificate);
  command
      .add_flag("--tls-check-host", credentials.tls_check_host,
                "The other side's certificate must name the host that is connected to")
      ->needs(certificate)
      ->group("Credentials");
}

void apply(const Credentials& credentials, Config& config) {
  config.secret_file = credentials.secret_file;
  config.tls_certificate = credentials.tls_certificate;
  config.tls_key = credentials.tls_key;
  config.tls_authorities = credentials.tls_authorities;
  config.tls_check_host = credentials.tls_check_host;
}

std::vector<std::string> arguments(const Credentials& credentials) {
  std::vector<std::string> list;
  const auto add_given = [&](const char* name, const std::string& value) {
    if (!value.empty()) list.insert(list.end(), {name, value});
  };
  add_given("--secret-file", credentials.secret_file);
  add_given("--tls-certificate", credentials.tls_certificate);
  add_given("--tls-key", credentials.tls_key);
  add_given("--tls-authorities", credentials.tls_authorities);
  if (credentials.tls_check_host) list.emplace_back("--tls-check-host");
  return list;
}

}  // namespace weft::tool
