#include <fmt/format.h>

#include <memory>

#include "apps/zeus/commands.h"
#include "apps/zeus/monitor/session.h"
#include "apps/zeus/numbers.h"
#include "zeus/metrics/metric_catalogue.h"

namespace zeus::cli {
namespace {

void AddOutputOptions(Verb verb, MonitorOptions& options) {
  const Option json = verb.AddFlag("--json", options.json, "Print samples as JSON, one per line");
  const Option csv = verb.AddFlag("--csv", options.csv, "Print samples as comma-separated values");
  json.Excludes(csv);
  verb.AddOption("--output", options.output,
                 "Append the lines of --json or --csv to this file and show the table")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddOption("--trace", options.trace, "Write a trace for ui.perfetto.dev")
      .Check(NotEmpty())
      .TypeName("FILE");
  verb.AddFlag("--quiet", options.quiet, "Show no table");
}

void AddMetricsOptions(Verb verb, MonitorOptions& options) {
  verb.AddOption("--serve", options.serve,
                 "Serve a live page and metrics for Prometheus on host:port; a port alone is this "
                 "machine only, 0 one that is free")
      .Check(NotEmpty())
      .TypeName("ADDRESS");
  const Option push = verb.AddOption("--push", options.push, "Push to this Prometheus push gateway")
                          .TypeName("URL");
  verb.AddOption("--job", options.job, "Name of the job of --push").Needs(push).ShowDefault();
  verb.AddOption("--instance", options.instance,
                 "Name of the instance of --push (the host's by default)")
      .Needs(push);
}

}  // namespace

void AddMonitorCommand(Verb app, Action& action) {
  auto options = std::make_shared<MonitorOptions>();
  const Verb verb =
      app.AddVerb("monitor", "Show power, energy and temperature of every device, live");
  verb.AddOption("--interval", options->interval, "Seconds between two samples")
      .Check(NumberBetween(0.01, 3600))
      .ShowDefault();
  verb.AddOption("--duration", options->duration, "Stop after this many seconds (0: never)")
      .Check(NumberBetween(0, 1e9))
      .ShowDefault();
  verb.AddOption("--gpus", options->gpus, "Only these GPUs: 0,1")
      .Delimiter(',')
      .Check(WholeNumberBetween(0, 4095));
  verb.AddFlag("--no-cpu", options->no_cpu, "Leave CPUs and their memory out");
  AddOutputOptions(verb, *options);
  AddMetricsOptions(verb, *options);
  AddCarbonOptions(verb, options->carbon);
  auto list = std::make_shared<bool>(false);
  verb.AddFlag("--list-metrics", *list, "List the metrics of --serve and --push, and end");
  verb.Footer(
      "SIGINT and SIGTERM end it with exit code 0 and the energy of every device. Lines and "
      "metrics "
      "are described in docs/monitoring.md.");
  verb.OnChosen([&action, options, list] {
    action = [options, list]() -> Result<int> {
      if (!*list) return RunMonitor(*options);
      fmt::print("{}", metrics::Reference());
      return 0;
    };
  });
}

}  // namespace zeus::cli
