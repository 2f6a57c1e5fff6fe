#include "zeus/server/tls_files.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/server/regular_file.h"

namespace zeus::server {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::string Shown(const std::filesystem::path& file) { return Printable(file.string()); }

std::string Reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "unknown reason" : reason;
}

// OpenSSL would ask the terminal for a pass phrase. `asked` may be null.
int RefuseToAsk(char*, int, int, void* asked) {
  if (asked != nullptr) *static_cast<bool*>(asked) = true;
  return -1;
}

Result<PrivateKey> ReadKey(const std::filesystem::path& file) {
  const Bio input(BIO_new_file(file.c_str(), "r"), &BIO_free);
  bool encrypted = false;
  PrivateKey key(
      input ? PEM_read_bio_PrivateKey(input.get(), nullptr, RefuseToAsk, &encrypted) : nullptr,
      &EVP_PKEY_free);
  if (encrypted)
    return InvalidArgument(
        fmt::format("the key {} is encrypted: give one without a pass phrase", Shown(file)));
  if (!key)
    return InvalidArgument(
        fmt::format("{} is no private key in PEM format: {}", Shown(file), Reason()));
  return key;
}

void WarnOfDates(const std::filesystem::path& file, const X509& certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0)
    log::Warning("the certificate {} has expired: clients will refuse it", Shown(file));
  else if (X509_cmp_current_time(X509_get0_notBefore(&certificate)) > 0)
    log::Warning("the certificate {} is not valid yet: clients will refuse it", Shown(file));
}

}  // namespace

Status LoadTls(const TlsFiles& files, SSL_CTX& context) {
  for (const auto& file : {files.certificate, files.key})
    ZEUS_RETURN_IF_ERROR(CheckRegularFile(file));
  SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION);
  SSL_CTX_set_default_passwd_cb(&context, RefuseToAsk);
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(&context, files.certificate.c_str()) != 1)
    return InvalidArgument(
        fmt::format("{} is no certificate in PEM format: {}", Shown(files.certificate), Reason()));
  ZEUS_TRY(const PrivateKey key, ReadKey(files.key));
  const X509* certificate = SSL_CTX_get0_certificate(&context);
  if (X509_check_private_key(certificate, key.get()) != 1)
    return InvalidArgument(
        fmt::format("certificate and key do not belong together: {} is not the private "
                    "key of {}",
                    Shown(files.key), Shown(files.certificate)));
  if (SSL_CTX_use_PrivateKey(&context, key.get()) != 1)
    return InvalidArgument(
        fmt::format("the key {} cannot be used: {}", Shown(files.key), Reason()));
  WarnOfDates(files.certificate, *certificate);
  ERR_clear_error();
  return Ok();
}

}  // namespace zeus::server
