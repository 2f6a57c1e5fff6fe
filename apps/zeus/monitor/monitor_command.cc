#include "apps/zeus/monitor/monitor_command.h"

#include <fmt/format.h>

#include <memory>

#include "apps/zeus/monitor/session.h"
#include "apps/zeus/numbers.h"
#include "zeus/export/metric_catalogue.h"

namespace zeus::cli {
namespace {

void AddOutputOptions(CLI::App& verb, MonitorOptions& options) {
  auto* json = verb.add_flag("--json", options.json, "Print samples as JSON, one per line");
  auto* csv = verb.add_flag("--csv", options.csv, "Print samples as comma-separated values");
  json->excludes(csv);
  verb.add_option("--output", options.output,
                  "Append the lines of --json or --csv to this file and show the table")
      ->check(NotEmpty())
      ->type_name("FILE");
  verb.add_option("--trace", options.trace, "Write a trace for ui.perfetto.dev")
      ->check(NotEmpty())
      ->type_name("FILE");
  verb.add_flag("--quiet", options.quiet, "Show no table");
}

void AddMetricsOptions(CLI::App& verb, MonitorOptions& options) {
  verb.add_option("--serve", options.serve,
                  "Answer Prometheus on host:port; a port alone is this machine only, 0 one that "
                  "is free")
      ->check(NotEmpty())
      ->type_name("ADDRESS");
  auto* push = verb.add_option("--push", options.push, "Push to this Prometheus push gateway")
                   ->type_name("URL");
  verb.add_option("--job", options.job, "Name of the job of --push")
      ->needs(push)
      ->capture_default_str();
  verb.add_option("--instance", options.instance,
                  "Name of the instance of --push (the host's by default)")
      ->needs(push);
}

}  // namespace

void AddMonitorCommand(CLI::App& app, Action& action) {
  auto options = std::make_shared<MonitorOptions>();
  CLI::App* verb =
      app.add_subcommand("monitor", "Show power, energy and temperature of every device, live");
  verb->add_option("--interval", options->interval, "Seconds between two samples")
      ->check(NumberBetween(0.01, 3600))
      ->capture_default_str();
  verb->add_option("--duration", options->duration, "Stop after this many seconds (0: never)")
      ->check(NumberBetween(0, 1e9))
      ->capture_default_str();
  verb->add_option("--gpus", options->gpus, "Only these GPUs: 0,1")
      ->delimiter(',')
      ->check(WholeNumberBetween(0, 4095));
  verb->add_flag("--no-cpu", options->no_cpu, "Leave CPUs and their memory out");
  AddOutputOptions(*verb, *options);
  AddMetricsOptions(*verb, *options);
  AddCarbonOptions(*verb, options->carbon);
  auto list = std::make_shared<bool>(false);
  verb->add_flag("--list-metrics", *list, "List the metrics of --serve and --push, and end");
  verb->footer(
      "SIGINT and SIGTERM end it with exit code 0 and the energy of every device. Lines and "
      "metrics "
      "are described in docs/monitoring.md.");
  verb->callback([&action, options, list] {
    action = [options, list]() -> Result<int> {
      if (!*list) return RunMonitor(*options);
      fmt::print("{}", metrics::Reference());
      return 0;
    };
  });
}

}  // namespace zeus::cli
