#pragma once

#include <openssl/ssl.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/http/client_certificate.h"

// OpenSSL for both ends of a connection: loading a server's certificate, and explaining to a
// client's user why a certificate was refused.
namespace zeus::http {

// The files of a server's identity.
struct TlsFiles {
  std::filesystem::path certificate{};  // PEM, with the chain.
  std::filesystem::path key{};          // PEM, without a pass phrase.
  // PEM: who vouches for certificates of clients. Clients without one are served, too; those with
  // one that nobody of these has signed are not. Empty: certificates of clients mean nothing.
  std::filesystem::path client_authorities{};
};

// Reads certificate and key into a server's context, which then accepts TLS 1.2 and later. Returns
// kInvalidArgument when a file is malformed or the two do not belong together. Never asks a
// terminal for a pass phrase. Logs a warning when the certificate is out of date.
Status LoadTls(const TlsFiles& files, SSL_CTX& context);

// The certificate of the client at the other end, after the handshake; nullopt where it gave none,
// none that an authority vouches for, or one without a name.
std::optional<ClientCertificate> CertificateOfClient(const SSL& connection);

// Records the certificates that a server presents to a client, so that a refusal can name the
// certificate, the reason and the remedy. One owner; must outlive the contexts it is attached to.
class TlsWatch {
 public:
  TlsWatch() = default;
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

  // OpenSSL verifies certificates as before; the watch records the latest verdict.
  void Attach(SSL_CTX& context);

  // Explains why the latest certificate was not accepted for `host`. The text is the end of a
  // sentence and says what to do.
  std::string Explain(const std::string& host) const;

 private:
  static int Verify(X509_STORE_CTX* chain, void* watch);
  void Record(X509_STORE_CTX& chain);

  int code_ = X509_V_OK;
  // Properties of the certificate that OpenSSL found fault with.
  std::string subject_{};
  std::string issuer_{};
  std::string not_before_{};
  std::string not_after_{};
  std::vector<std::string> names_{};  // The hosts that the server's own certificate is for.
};

}  // namespace zeus::http
