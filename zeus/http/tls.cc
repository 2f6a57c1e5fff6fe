#include "zeus/http/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <memory>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/text.h"
#include "zeus/http/regular_file.h"

namespace zeus::http {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

std::string Shown(const std::filesystem::path& file) { return Printable(file.string()); }

std::string Reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "unknown reason" : reason;
}

// Takes the place of OpenSSL's question for a pass phrase. `asked` may be null.
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

void WarnIfOutOfDate(const std::filesystem::path& file, const X509& certificate) {
  if (X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0)
    log::Warning("the certificate {} has expired: clients will refuse it", Shown(file));
  else if (X509_cmp_current_time(X509_get0_notBefore(&certificate)) > 0)
    log::Warning("the certificate {} is not valid yet: clients will refuse it", Shown(file));
}

std::string ContentText(const Bio& bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return Printable(std::string(text, static_cast<std::size_t>(size)));
}

std::string NameText(X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  const std::string text = ContentText(bio);
  return text.empty() ? "without a name" : text;
}

std::string TimeText(const ASN1_TIME* time) {
  const Bio bio(BIO_new(BIO_s_mem()), &BIO_free);
  ASN1_TIME_print(bio.get(), time);
  return ContentText(bio);
}

std::string AddressText(const ASN1_OCTET_STRING& address) {
  const unsigned char* bytes = ASN1_STRING_get0_data(&address);
  const int size = ASN1_STRING_length(&address);
  if (size == 4) return fmt::format("{}.{}.{}.{}", bytes[0], bytes[1], bytes[2], bytes[3]);
  std::string text;
  for (int i = 0; i + 1 < size; i += 2)
    text += fmt::format("{}{:x}", i == 0 ? "" : ":", bytes[i] << 8 | bytes[i + 1]);
  return text;
}

std::vector<std::string> HostNames(const X509& certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> alternatives(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  for (int i = 0; i < sk_GENERAL_NAME_num(alternatives.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    if (name->type == GEN_DNS) {
      const unsigned char* text = ASN1_STRING_get0_data(name->d.dNSName);
      names.push_back(Printable(std::string(text, text + ASN1_STRING_length(name->d.dNSName))));
    } else if (name->type == GEN_IPADD) {
      names.push_back(AddressText(*name->d.iPAddress));
    }
  }
  return names;
}

bool HasUnknownIssuer(int code) {
  return code == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
         code == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
         code == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT ||
         code == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY ||
         code == X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE;
}

constexpr std::size_t kLongestName = 200;

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

// The common name; "" where there is none, several, or one that cannot be written in a rule.
std::string CommonName(const X509& certificate) {
  const X509_NAME* const subject = X509_get_subject_name(&certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return "";
  unsigned char* bytes = nullptr;
  const int size =
      ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  std::string name(bytes, bytes + size);
  OPENSSL_free(bytes);
  return IsName(name) ? name : "";
}

Status TrustAuthorities(const std::filesystem::path& file, SSL_CTX& context) {
  ZEUS_RETURN_IF_ERROR(CheckRegularFile(file));
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(file.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(&context, file.c_str()) != 1)
    return InvalidArgument(
        fmt::format("{} has no certificates in PEM format: {}", Shown(file), Reason()));
  SSL_CTX_set_client_CA_list(&context, names);
  SSL_CTX_set_verify(&context, SSL_VERIFY_PEER, nullptr);
  // A connection that goes on where an earlier one ended would show no certificate again.
  SSL_CTX_set_session_cache_mode(&context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(&context, SSL_OP_NO_TICKET);
  SSL_CTX_set_num_tickets(&context, 0);
  return Ok();
}

}  // namespace

std::optional<ClientCertificate> CertificateOfClient(const SSL& connection) {
  const X509* const certificate = SSL_get0_peer_certificate(&connection);
  if (certificate == nullptr || SSL_get_verify_result(&connection) != X509_V_OK)
    return std::nullopt;
  std::string name = CommonName(*certificate);
  std::tm until{};
  if (name.empty() || ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until) != 1)
    return std::nullopt;
  return ClientCertificate{.name = std::move(name),
                           .expires = WallTime(std::chrono::seconds(::timegm(&until)))};
}

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
  if (!files.client_authorities.empty())
    ZEUS_RETURN_IF_ERROR(TrustAuthorities(files.client_authorities, context));
  WarnIfOutOfDate(files.certificate, *certificate);
  ERR_clear_error();
  return Ok();
}

void TlsWatch::Attach(SSL_CTX& context) {
  SSL_CTX_set_cert_verify_callback(&context, &TlsWatch::Verify, this);
}

int TlsWatch::Verify(X509_STORE_CTX* chain, void* watch) {
  const int verdict = X509_verify_cert(chain);
  static_cast<TlsWatch*>(watch)->Record(*chain);
  return verdict;
}

void TlsWatch::Record(X509_STORE_CTX& chain) {
  code_ = X509_STORE_CTX_get_error(&chain);
  X509* own = X509_STORE_CTX_get0_cert(&chain);
  X509* at_fault = X509_STORE_CTX_get_current_cert(&chain);
  if (at_fault == nullptr) at_fault = own;
  if (own != nullptr) names_ = HostNames(*own);
  if (at_fault == nullptr) return;
  subject_ = NameText(X509_get_subject_name(at_fault));
  issuer_ = NameText(X509_get_issuer_name(at_fault));
  not_before_ = TimeText(X509_get0_notBefore(at_fault));
  not_after_ = TimeText(X509_get0_notAfter(at_fault));
}

std::string TlsWatch::Explain(const std::string& host) const {
  if (code_ == X509_V_OK)
    return fmt::format(
        "its certificate ({}) is for {}, not for {}: use one of these names in its address, or "
        "have "
        "a certificate made for this one",
        subject_, names_.empty() ? "no name at all" : fmt::format("{}", fmt::join(names_, ", ")),
        host);
  if (code_ == X509_V_ERR_CERT_HAS_EXPIRED)
    return fmt::format(
        "the certificate {} expired on {}: renew it on the server, or set this machine's clock "
        "right",
        subject_, not_after_);
  if (code_ == X509_V_ERR_CERT_NOT_YET_VALID)
    return fmt::format("the certificate {} is not valid before {}: is this machine's clock right?",
                       subject_, not_before_);
  if (HasUnknownIssuer(code_))
    return fmt::format(
        "nobody whom this machine trusts vouches for its certificate {}, issued by {}: give the "
        "issuer's certificate with --ca-file (ZEUS_CA_FILE; authorities= in Python)",
        subject_, issuer_);
  return fmt::format("the certificate {}, issued by {}, is refused: {}", subject_, issuer_,
                     X509_verify_cert_error_string(code_));
}

}  // namespace zeus::http
