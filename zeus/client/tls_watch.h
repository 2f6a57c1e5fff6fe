#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace zeus {

// Notes the certificate that a server presents, so that an error message can say which one was
// refused, why, and what to do. One owner; must outlive the contexts that it is attached to.
class TlsWatch {
 public:
  TlsWatch() = default;
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

  // Certificates are verified as without it; the latest result is noted.
  void Attach(SSL_CTX& context);

  // Returns why the latest certificate is not accepted for `host`, and the fix, as the end of a
  // sentence.
  std::string Explain(const std::string& host) const;

 private:
  static int Judge(X509_STORE_CTX* chain, void* watch);
  void Note(X509_STORE_CTX& chain);

  int code_ = X509_V_OK;
  // Properties of the certificate that failed.
  std::string subject_{};
  std::string issuer_{};
  std::string not_before_{};
  std::string not_after_{};
  std::vector<std::string> names_{};  // The host names in the server's own certificate.
};

}  // namespace zeus
