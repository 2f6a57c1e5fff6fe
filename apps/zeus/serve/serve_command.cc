#include "apps/zeus/serve/serve_command.h"

#include <memory>

#include "apps/zeus/numbers.h"
#include "apps/zeus/serve/serve_session.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

void AddSecurityOptions(CLI::App& verb, ServeOptions& options) {
  auto* tokens =
      verb.add_option("--tokens", options.tokens, "Only answer who has a token of this file")
          ->check(NotEmpty())
          ->type_name("FILE");
  auto* new_token = verb.add_option("--new-token", options.new_token,
                                    "Add a token of this name to --tokens, print it, and end")
                        ->needs(tokens)
                        ->check(NotEmpty())
                        ->type_name("NAME");
  verb.add_flag("--read-only", options.read_only, "The new token is for reading only")
      ->needs(new_token);
  auto* certificate =
      verb.add_option("--tls-cert", options.tls_certificate, "Serve HTTPS with this certificate")
          ->check(NotEmpty())
          ->type_name("FILE");
  auto* key = verb.add_option("--tls-key", options.tls_key, "The private key of --tls-cert")
                  ->needs(certificate)
                  ->check(NotEmpty())
                  ->type_name("FILE");
  certificate->needs(key);
  verb.add_flag("--insecure", options.insecure, "Serve other machines without tokens");
}

void AddLimitOptions(CLI::App& verb, ServeOptions& options) {
  verb.add_option("--max-body", options.max_body, "Bytes of the largest body")
      ->check(WholeNumberBetween(1024, std::uint64_t{1} << 30))
      ->capture_default_str();
  verb.add_option("--max-connections", options.max_connections, "Connections at the same time")
      ->check(WholeNumberBetween(1, 100'000))
      ->capture_default_str();
  verb.add_option("--workers", options.workers, "Changes that are worked on at the same time")
      ->check(WholeNumberBetween(1, 1024))
      ->capture_default_str();
  verb.add_option("--header-timeout", options.header_timeout,
                  "Seconds that the header of a request may take; the body may take three times "
                  "as long")
      ->check(NumberBetween(0.1, 3600))
      ->capture_default_str();
  verb.add_option("--idle-timeout", options.idle_timeout, "Seconds between two requests")
      ->check(NumberBetween(0.1, 86400))
      ->capture_default_str();
  verb.add_option("--request-timeout", options.request_timeout, "Seconds that an answer may take")
      ->check(NumberBetween(0.1, 3600))
      ->capture_default_str();
  verb.add_option("--shutdown-timeout", options.shutdown_timeout,
                  "Seconds that requests have to finish after SIGTERM")
      ->check(NumberBetween(0, 3600))
      ->capture_default_str();
}

void AddPlanningOptions(CLI::App& verb, ServeOptions& options) {
  verb.add_option("--solves", options.solves, "Frontiers of pipelines solved at the same time")
      ->check(WholeNumberBetween(1, 64))
      ->capture_default_str();
  verb.add_option("--max-instructions", options.max_instructions,
                  "Instructions of the largest pipeline to plan for")
      ->check(WholeNumberBetween(1, pipeline::kMostInstructions))
      ->capture_default_str();
  verb.add_option("--pipeline-schedule", options.pipeline_schedule,
                  "Schedule file of the Python implementation, for its clients that name no plan")
      ->check(NotEmpty())
      ->type_name("FILE");
  verb.add_option("--rank-timeout", options.rank_timeout,
                  "Seconds that a rank of such a client waits for the others")
      ->check(NumberBetween(0, 86400))
      ->capture_default_str();
  verb.add_option("--session-timeout", options.session_timeout,
                  "Seconds after which such a pipeline is forgotten that nobody asks about")
      ->check(NumberBetween(60, 1e9))
      ->capture_default_str();
}

}  // namespace

void AddServeCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* verb =
      app.add_subcommand("serve", "Serve recurring jobs and plans of pipelines over HTTP");
  verb->add_option("--listen", options->listen,
                   "host:port, a port of this machine, or unix:/path; port 0 is one that is free")
      ->check(NotEmpty())
      ->type_name("ADDRESS")
      ->capture_default_str();
  verb->add_option("--database", options->database,
                   "sqlite:///path/zeus.db or postgresql://…; a file of the user by default")
      ->check(NotEmpty())
      ->type_name("URL");
  AddSecurityOptions(*verb, *options);
  auto* log = verb->add_option("--access-log", options->access_log,
                               "Append a JSON line per request to this file; - is standard error")
                  ->check(NotEmpty())
                  ->type_name("FILE")
                  ->capture_default_str();
  verb->add_flag("--no-access-log", options->no_access_log, "Log no requests")->excludes(log);
  AddLimitOptions(*verb, *options);
  AddPlanningOptions(*verb, *options);
  verb->footer(
      "Prints \"listening on URL\" when it is ready. SIGINT and SIGTERM let requests finish and "
      "end "
      "it with exit code 0; a second one ends it at once. docs/server.md describes the API.");
  verb->callback([&action, options] {
    action = [options] {
      return options->new_token.empty() ? RunServe(*options) : MakeToken(*options);
    };
  });
}

}  // namespace zeus::cli
