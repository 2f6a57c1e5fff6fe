#include <memory>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/serve/serve_session.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

void AddSecurityOptions(Verb verb, ServeOptions& options) {
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
  verb.AddOption("--namespace", options.name_space,
                 "Name space of the new token: it sees and changes what is in there, and nothing "
                 "else")
      .Needs(new_token)
      .Check(NotEmpty())
      .TypeName("NAME");
  verb.AddOption("--quota", options.quotas,
                 "How much a name space may hold, like team:jobs=10,trials=1000,plans=5; * is for "
                 "those without one of their own; may be repeated")
      .TypeName("TEXT");
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
}

void AddLimitOptions(Verb verb, ServeOptions& options) {
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
  AddShutdownTimeout(verb, options.shutdown_timeout, "requests");
}

void AddPlanningOptions(Verb verb, ServeOptions& options) {
  verb.AddOption("--solves", options.solves, "Frontiers of pipelines solved at the same time")
      .Check(WholeNumberBetween(1, 64))
      .ShowDefault();
  verb.AddOption("--max-instructions", options.max_instructions,
                 "Instructions of the largest pipeline to plan for")
      .Check(WholeNumberBetween(1, pipeline::kMostInstructions))
      .ShowDefault();
  verb.AddOption("--pipeline-schedule", options.pipeline_schedule,
                 "Schedule file of the Python implementation, for its clients that name no plan")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--rank-timeout", options.rank_timeout,
                 "Seconds that a rank of such a client waits for the others")
      .Check(NumberBetween(0, 86400))
      .ShowDefault();
  verb.AddOption("--session-timeout", options.session_timeout,
                 "Seconds after which such a pipeline is forgotten that nobody asks about")
      .Check(NumberBetween(60, 1e9))
      .ShowDefault();
}

}  // namespace

void AddServeCommand(Verb app, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  const Verb verb = app.AddVerb("serve", "Serve recurring jobs and plans of pipelines over HTTP");
  AddListenOption(verb, options->listen);
  verb.AddOption("--database", options->database,
                 "sqlite:///path/zeus.db or postgresql://…; a file of the user by default")
      .Check(NotEmpty())
      .TypeName("URL");
  AddSecurityOptions(verb, *options);
  options->files.access_log = "-";
  const Option log = AddAccessLogOption(verb, options->files).ShowDefault();
  verb.AddFlag("--no-access-log", options->no_access_log, "Log no requests").Excludes(log);
  verb.AddOption("--owner", options->owner,
                 "End, as at SIGTERM, when the process of this id, which has started the server, "
                 "has ended in whatever way")
      .Check(WholeNumberBetween(1, 1 << 30))
      .TypeName("PID");
  AddLimitOptions(verb, *options);
  AddPlanningOptions(verb, *options);
  AddCarbonOptions(verb, options->carbon);
  verb.Footer(
      "Prints \"listening on URL\" when it is ready. SIGINT and SIGTERM let requests finish and "
      "end "
      "it with exit code 0; a second one ends it at once. SIGHUP makes it read tokens and "
      "certificates "
      "and open its log again. docs/server.md describes the API.");
  verb.OnChosen([&action, options] {
    action = [options] {
      return options->new_token.empty() ? RunServe(*options) : MakeToken(*options);
    };
  });
}

}  // namespace zeus::cli
