#include "apps/zeus/http_server_options.h"

#include "apps/zeus/numbers.h"

namespace zeus::cli {

void AddAddressOptions(Verb verb, HttpServerOptions& options) {
  verb.AddOption("--listen", options.listen,
                 "host:port, a port of this machine, or unix:/path; port 0 is one that is free")
      .Check(NotEmpty())
      .TypeName("ADDRESS")
      .ShowDefault();
  verb.AddOption("--database", options.database,
                 "sqlite:///path/zeus.db or postgresql://…; a file of the user by default")
      .Check(NotEmpty())
      .TypeName("URL");
}

Option AddSecurityOptions(Verb verb, HttpServerOptions& options) {
  const Option tokens =
      verb.AddOption("--tokens", options.tokens, "Only answer clients with a token of this file")
          .Check(NotEmpty())
          .TypeName("FILE");
  const Option new_token = verb.AddOption("--new-token", options.new_token,
                                          "Add a token of this name to --tokens, print it, and end")
                               .Needs(tokens)
                               .Check(NotEmpty())
                               .TypeName("NAME");
  const Option read_only =
      verb.AddFlag("--read-only", options.read_only, "The new token is for reading only")
          .Needs(new_token);
  verb.AddFlag("--admin", options.admin,
               "The new token is an administrator's: for every name space, and to see how much "
               "each holds")
      .Needs(new_token)
      .Excludes(read_only);
  AddTlsOptions(verb, options.files);
  verb.AddFlag("--insecure", options.insecure, "Serve other machines without tokens");
  verb.AddFlag("--plain-http", options.plain_http,
               "Serve other machines without TLS: whoever is on the way can read their tokens");
  verb.AddOption(
          "--allow-host", options.hosts,
          "A name of this server besides localhost, like that of a proxy in front of it; may "
          "be repeated")
      .Check(NotEmpty())
      .TypeName("NAME");
  return new_token;
}

void AddLogOptions(Verb verb, HttpServerOptions& options) {
  options.files.access_log = "-";
  const Option log = AddAccessLogOption(verb, options.files).ShowDefault();
  verb.AddFlag("--no-access-log", options.no_access_log, "Log no requests").Excludes(log);
}

void AddLimitOptions(Verb verb, HttpServerOptions& options) {
  verb.AddOption("--max-body", options.max_body, "Bytes of the largest body")
      .Check(WholeNumberBetween(1024, std::uint64_t{1} << 30))
      .ShowDefault();
  verb.AddOption("--body-memory", options.body_memory,
                 "Bytes of all bodies that arrive or are worked on at the same time")
      .Check(WholeNumberBetween(1024, std::uint64_t{1} << 40))
      .ShowDefault();
  verb.AddOption("--max-connections", options.max_connections,
                 "Connections at the same time; by default what ulimit -n leaves, at most 10000")
      .Check(WholeNumberBetween(1, 100'000));
  verb.AddOption("--max-connections-per-address", options.max_connections_per_address,
                 "Connections from one address at the same time; half of --max-connections by "
                 "default")
      .Check(WholeNumberBetween(1, 100'000));
  verb.AddOption("--workers", options.workers, "Changes that are worked on at the same time")
      .Check(WholeNumberBetween(1, 1024))
      .ShowDefault();
  verb.AddOption("--header-timeout", options.header_timeout,
                 "Seconds that the header of a request may take; the body may take three times "
                 "as long")
      .Check(NumberBetween(0.1, 3600))
      .ShowDefault();
  verb.AddOption("--idle-timeout", options.idle_timeout, "Seconds between two requests")
      .Check(NumberBetween(0.1, 86400))
      .ShowDefault();
  verb.AddOption("--request-timeout", options.request_timeout, "Seconds that an answer may take")
      .Check(NumberBetween(0.1, 3600))
      .ShowDefault();
  verb.AddOption("--shutdown-timeout", options.shutdown_timeout,
                 "Seconds that requests have to finish after SIGTERM")
      .Check(NumberBetween(0, 3600))
      .ShowDefault();
}

}  // namespace zeus::cli
