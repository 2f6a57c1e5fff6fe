#include "apps/zeus/server_options.h"

#include "apps/zeus/numbers.h"

namespace zeus::cli {

void AddTlsOptions(Verb verb, ServerFiles& files) {
  const Option certificate =
      verb.AddOption("--tls-cert", files.tls_certificate, "Serve HTTPS with this certificate")
          .Check(NotEmpty())
          .TypeName("FILE");
  const Option key = verb.AddOption("--tls-key", files.tls_key, "The private key of --tls-cert")
                         .Needs(certificate)
                         .Check(NotEmpty())
                         .TypeName("FILE");
  certificate.Needs(key);
}

Option AddAccessLogOption(Verb verb, ServerFiles& files) {
  return verb
      .AddOption("--access-log", files.access_log,
                 "Append a JSON line per request to this file; - is standard error")
      .Check(NotEmpty())
      .TypeName("FILE");
}

}  // namespace zeus::cli
