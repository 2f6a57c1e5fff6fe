#include <memory>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/llm/commands.h"
#include "apps/zeus/llm/gateway_session.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/server_options.h"

namespace zeus::cli {
namespace {

void AddUpstreamOptions(Verb verb, LlmGatewayOptions& options) {
  verb.AddOption("--upstream", options.upstreams,
                 "URL of a server of language models; may be repeated: requests go to the one that "
                 "serves their model")
      .Required()
      .Check(NotEmpty())
      .TypeName("URL");
  verb.AddOption(
          "--gpus", options.gpus,
          "GPUs of the upstream, as in 0,1 or by UUID; once for each --upstream, in the same "
          "order. auto, the default: those on which its process runs")
      .Check(NotEmpty())
      .TypeName("LIST");
  verb.AddOption("--models", options.models,
                 "Models of the upstream, as in a,b, where it does not list them itself; once for "
                 "each --upstream, - for none")
      .Check(NotEmpty())
      .TypeName("LIST");
  verb.AddOption("--ca-file", options.authorities,
                 "Certificates to trust for upstreams with https, instead of the system's")
      .Check(NotEmpty())
      .TypeName("FILE");
}

void AddMeteringOptions(Verb verb, LlmGatewayOptions& options) {
  verb.AddOption("--annotate", options.annotate,
                 "Put the energy into responses (all), or leave every byte of their bodies (none)")
      .Check(OneOf({"all", "none"}))
      .ShowDefault();
  verb.AddOption("--ask-usage", options.ask_usage,
                 "Ask for token counts in streams whose client does not; the client does not see "
                 "the answer. yes, the default; with --annotate none: no")
      .Check(OneOf({"yes", "no"}));
  verb.AddOption("--log", options.log,
                 "Append a JSON line for each metered request to this file, for charge-back; - is "
                 "standard error")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--key-header", options.key_header,
                 "Label requests by the value of this header, instead of a hash of the API key")
      .Check(NotEmpty())
      .TypeName("NAME");
  verb.AddFlag("--store-text", options.store_text,
               "Keep prompts and answers in records and log; without it no text is kept");
  verb.AddFlag("--spread-idle", options.spread_idle,
               "Charge requests for the energy between requests, too, by output tokens");
  verb.AddOption("--keep", options.keep, "Finished requests that /zeus/requests remembers")
      .Check(WholeNumberBetween(1, 10'000'000))
      .ShowDefault();
}

void AddGovernorOptions(Verb verb, LlmGatewayOptions& options) {
  const Option targets =
      verb.AddOption("--slo", options.slo,
                     "Lock the GPUs to the lowest clock that keeps these latencies: time to first "
                     "token and time per output token, as in ttft=1s,tpot=50ms,percentile=90")
          .Check(NotEmpty())
          .TypeName("TARGETS");
  verb.AddFlag("--slo-observe", options.slo_observe,
               "Touch no clock: only say which one --slo would lock, and what that would save")
      .Needs(targets);
}

void AddGatewayLimits(Verb verb, LlmGatewayOptions& options) {
  verb.AddOption("--max-body", options.max_body, "Bytes of the largest request")
      .Check(WholeNumberBetween(1024, std::uint64_t{1} << 40))
      .ShowDefault();
  verb.AddOption("--max-header", options.max_header, "Bytes of the largest head of a message")
      .Check(WholeNumberBetween(1024, std::uint64_t{1} << 24))
      .ShowDefault();
  verb.AddOption("--max-connections", options.max_connections,
                 "Clients at the same time; by default what ulimit -n leaves")
      .Check(WholeNumberBetween(1, 1'000'000));
  verb.AddOption("--connect-timeout", options.connect_timeout,
                 "Seconds to reach an upstream; then the client gets 504")
      .Check(NumberBetween(0.01, 3600))
      .ShowDefault();
  verb.AddOption("--first-byte-timeout", options.first_byte_timeout,
                 "Seconds until the upstream answers; then the client gets 504")
      .Check(NumberBetween(0.01, 86400))
      .ShowDefault();
  verb.AddOption("--idle-timeout", options.idle_timeout,
                 "Seconds without a byte of a response, or without a byte that the client reads")
      .Check(NumberBetween(0.01, 86400))
      .ShowDefault();
  AddShutdownTimeout(verb, options.shutdown_timeout, "responses");
}

}  // namespace

void AddLlmGateway(Verb llm, Action& action) {
  auto options = std::make_shared<LlmGatewayOptions>();
  const Verb verb = llm.AddVerb(
      "gateway", "Stand in front of servers of language models and meter every request");
  AddUpstreamOptions(verb, *options);
  AddListenOption(verb, options->listen);
  AddTlsOptions(verb, options->tls_certificate, options->tls_key);
  AddMeteringOptions(verb, *options);
  AddGovernorOptions(verb, *options);
  AddGatewayLimits(verb, *options);
  AddCarbonOptions(verb, options->carbon);
  verb.Footer(
      "Prints \"listening on URL\" when it is ready. SIGINT and SIGTERM let responses finish and "
      "end it with exit code 0; a second one ends it at once. Clocks that --slo locked are put "
      "back. "
      "docs/llm-gateway.md describes what "
      "clients get, and the gateway's own paths below /zeus/.");
  verb.OnChosen([&action, options] { action = [options] { return RunLlmGateway(*options); }; });
}

}  // namespace zeus::cli
