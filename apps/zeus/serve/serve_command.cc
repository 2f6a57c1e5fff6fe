#include <memory>

#include "apps/zeus/carbon_options.h"
#include "apps/zeus/commands.h"
#include "apps/zeus/http_server_frame.h"
#include "apps/zeus/numbers.h"
#include "apps/zeus/serve/serve_session.h"
#include "zeus/optimizer/pipeline/schedule.h"

namespace zeus::cli {
namespace {

void AddTenantOptions(Verb verb, const Option& new_token, ServeOptions& options) {
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
  AddAddressOptions(verb, *options);
  AddTenantOptions(verb, AddSecurityOptions(verb, *options), *options);
  AddLogOptions(verb, *options);
  verb.AddOption("--owner", options->owner,
                 "End, as at SIGTERM, when the process of this id, which has started the server, "
                 "has ended in whatever way")
      .Check(WholeNumberBetween(1, 1 << 30))
      .TypeName("PID");
  verb.AddOption("--budget", options->budget,
                 "Share out the power budget of this file among nodes whose zeusd asks for it")
      .Check(NotEmpty())
      .TypeName("FILE");
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
