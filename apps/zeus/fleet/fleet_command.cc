#include "apps/zeus/fleet/fleet_command.h"

#include <memory>

#include "apps/zeus/fleet/fleet_session.h"
#include "apps/zeus/numbers.h"

namespace zeus::cli {

void AddFleetCommand(Verb app, Action& action) {
  auto options = std::make_shared<FleetOptions>();
  const Verb verb = app.AddVerb("fleet", "Show the power and the waste of many nodes in a browser");
  verb.AddOption("--node", options->nodes,
                 "A node: the URL of its zeusd or zeus monitor --serve; may be repeated")
      .Check(NotEmpty())
      .TypeName("URL");
  verb.AddOption("--nodes-file", options->nodes_file,
                 "A file with such a URL on each line; lines that begin with # are ignored")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--prometheus", options->prometheus,
                 "Take the nodes and their metrics from this Prometheus")
      .Check(NotEmpty())
      .TypeName("URL");
  verb.AddOption("--listen", options->listen,
                 "host:port, or a port of this machine; port 0 is one that is free")
      .ShowDefault();
  verb.AddOption("--interval", options->interval, "Seconds between two looks at a node")
      .Check(NumberBetween(1, 3600))
      .ShowDefault();
  verb.AddOption("--best-limit", options->best_limits,
                 "The best known power limit of a model, like \"NVIDIA A100-SXM4-40GB=250\": what "
                 "is drawn above it counts as waste; may be repeated")
      .TypeName("MODEL=WATTS");
  verb.AddOption("--token-file", options->token_file, "A file with the token for the nodes")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--tls-ca", options->tls_ca, "Certificates to trust instead of the system's")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--allow-host", options->hosts,
                 "A name of this server besides localhost, like that of a proxy in front of it; "
                 "may be repeated")
      .Check(NotEmpty())
      .TypeName("NAME");
  verb.Footer("Everybody who reaches the address may look. docs/web.md shows the page.");
  verb.OnChosen([&action, options] { action = [options] { return RunFleet(*options); }; });
}

}  // namespace zeus::cli
