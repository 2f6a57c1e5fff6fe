#include "apps/zeus/server_options.h"

#include "apps/zeus/numbers.h"

namespace zeus::cli {

void AddListenOption(Verb verb, std::string& address) {
  verb.AddOption("--listen", address,
                 "host:port, a port of this machine, or unix:/path; port 0 is one that is free")
      .Check(NotEmpty())
      .TypeName("ADDRESS")
      .ShowDefault();
}

void AddTlsOptions(Verb verb, std::string& certificate, std::string& key) {
  const Option file = verb.AddOption("--tls-cert", certificate, "Serve HTTPS with this certificate")
                          .Check(NotEmpty())
                          .TypeName("FILE");
  const Option secret = verb.AddOption("--tls-key", key, "The private key of --tls-cert")
                            .Needs(file)
                            .Check(NotEmpty())
                            .TypeName("FILE");
  file.Needs(secret);
}

void AddTlsOptions(Verb verb, ServerFiles& files) {
  AddTlsOptions(verb, files.tls_certificate, files.tls_key);
}

void AddShutdownTimeout(Verb verb, double& seconds, const std::string& subject) {
  verb.AddOption("--shutdown-timeout", seconds,
                 "Seconds that " + subject + " have to finish after SIGTERM")
      .Check(NumberBetween(0, 86400))
      .ShowDefault();
}

Option AddAccessLogOption(Verb verb, ServerFiles& files) {
  return verb
      .AddOption("--access-log", files.access_log,
                 "Append a JSON line per request to this file; - is standard error")
      .Check(NotEmpty())
      .TypeName("FILE");
}

}  // namespace zeus::cli
