#pragma once

#include <openssl/ssl.h>

#include <string>
#include <vector>

namespace zeus {

// Notes what a server showed for a certificate, so that a refusal can say which one it was, why it
// was refused, and what to do. One owner; outlives the contexts that it watches.
class TlsWatch {
 public:
  TlsWatch() = default;
  TlsWatch(const TlsWatch&) = delete;
  TlsWatch& operator=(const TlsWatch&) = delete;

  // Certificates are judged as before; the latest judgement is noted.
  void Attach(SSL_CTX& context);

  // Why the latest certificate is none of `host`, as the end of a sentence, with the fix.
  std::string Explain(const std::string& host) const;

 private:
  static int Judge(X509_STORE_CTX* chain, void* watch);
  void Note(X509_STORE_CTX& chain);

  int code_ = X509_V_OK;
  // Properties of the certificate at fault.
  std::string subject_{};
  std::string issuer_{};
  std::string not_before_{};
  std::string not_after_{};
  std::vector<std::string> names_{};  // That the server's own certificate is for.
};

}  // namespace zeus
