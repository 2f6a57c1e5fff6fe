#include "apps/zeus/run/run_options.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "apps/zeus/command_line.h"
#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/power_limit/scheduler_wishes.h"

namespace zeus::cli {
namespace {

constexpr const char* kMeasure = "measure";
constexpr double kMostWatts = 1e5;
constexpr double kLongestWait = 86400;

Result<double> ParseBetween(std::string_view text, double most, const char* option,
                            const char* takes) {
  auto number = ParseDouble(text);
  if (number.ok() && number.value() >= 0 && number.value() <= most) return number;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} takes {}, not {}", option, takes, Quote(text))};
}

Status InterpretIdle(const RunFlags& flags, RunOptions& options) {
  if (flags.subtract_idle.empty()) return Ok();
  if (flags.subtract_idle == kMeasure) {
    options.measure_idle = Seconds(flags.idle_seconds);
    return Ok();
  }
  for (const std::string_view part : SplitAtCommas(flags.subtract_idle)) {
    ZEUS_TRY(const double watts, ParseBetween(part, kMostWatts, "--subtract-idle",
                                              "watts as in =50, or =50,60 for two GPUs"));
    options.given_idle.emplace_back(watts);
  }
  return Ok();
}

Refinement ParseRefinement(const std::string& text) {
  if (text == "always") return Refinement::kAlways;
  return text == "never" ? Refinement::kNever : Refinement::kAuto;
}

void AddRepeatFlags(Verb verb, RunFlags& flags) {
  constexpr std::uint64_t kMostRuns = 1000000;
  verb.AddOption("--repeat", flags.repeat, "Run the command this many times, one after the other")
      .Check(WholeNumberBetween(1, kMostRuns));
  verb.AddOption("--warmup", flags.warmup, "Runs before them that are not measured")
      .Check(WholeNumberBetween(0, kMostRuns))
      .ShowDefault();
  verb.AddOption("--cooldown", flags.cooldown,
                 "Seconds between two runs, or auto: until the GPUs are as cool as before the "
                 "first, or get no cooler")
      .ShowDefault();
  verb.AddOption("--cooldown-limit", flags.cooldown_limit,
                 "Seconds after which --cooldown auto gives up")
      .Check(NumberBetween(0, kLongestWait))
      .ShowDefault();
}

}  // namespace

void AddRunFlags(Verb verb, RunFlags& flags) {
  verb.AddOption("--json", flags.json, "Write the result to this file (- for standard output)")
      .Check(NotEmpty());
  verb.AddOption("--csv", flags.csv, "Append a row per device and run to this file")
      .Check(NotEmpty());
  verb.AddFlag("--quiet", flags.quiet, "No table on standard error");
  verb.AddFlag("--explain", flags.explain,
               "Also say where each number comes from: sensor, updates, what makes up the ±, flags")
      .Excludes("--quiet");
  verb.AddOption("--label", flags.label, "A name that the results carry");
  verb.AddOption("--gpus", flags.gpus, "Measure only these GPUs, as in 0,1").Check(NotEmpty());
  verb.AddFlag("--no-cpu", flags.no_cpu, "Do not measure CPUs and their memory");
  verb.AddOption(
          "--driver-timeout", flags.driver_timeout,
          "Seconds that drivers may take to find their devices; the command then starts, and "
          "a GPU that has not answered is not measured")
      .Check(NumberBetween(0.01, kLongestWait))
      .ShowDefault();
  verb.AddFlag(fmt::format("--subtract-idle{{{}}}", kMeasure), flags.subtract_idle,
               "Also say how much was used above idle; =WATTS takes that idle power for each "
               "GPU (or =50,60), otherwise it is measured before the command");
  verb.AddOption("--idle-seconds", flags.idle_seconds, "How long to measure idle power")
      .Check(NumberBetween(0.1, kLongestWait))
      .ShowDefault();
  AddRepeatFlags(verb, flags);
  verb.AddOption("--refine", flags.refine,
                 "Wait one or two sensor updates after the end for a better result: auto waits "
                 "where that pays")
      .Check(OneOf({"auto", "always", "never"}))
      .ShowDefault();
  AddCarbonOptions(verb, flags.carbon);
  verb.AddFlag(
      "--alone", flags.alone,
      "Report for this process alone, also where mpirun, srun or torchrun started several");
  verb.AddFlag("--per-node", flags.per_node,
               "A line for each node, where several ranks report together");
  verb.AddFlag("--wait-all", flags.child.wait_all,
               "Measure until every process that the command started has ended");
  verb.AddFlag("--kill-with-parent", flags.child.kill_with_parent,
               "Kill the command when zeus is killed");
}

namespace {

// Runs that are repeated would have to begin on all ranks at once.
Status FindPlace(const RunFlags& flags, RunOptions& options) {
  if (flags.alone) return Ok();
  ZEUS_TRY(options.place, FindRankPlace(ProcessEnvironment()));
  if (!options.place) return Ok();
  const bool several = flags.repeat || flags.warmup > 0;
  if (several || !flags.subtract_idle.empty()) {
    return InvalidArgument(fmt::format(
        "{} is not possible in each of several ranks: put zeus run before {}, or give --alone",
        several ? "--repeat" : "--subtract-idle", options.place->launcher));
  }
  options.meter.scope = MeterScope::kWholeNode;
  return Ok();
}

}  // namespace

Result<RunOptions> Interpret(const RunFlags& flags, std::vector<std::string> command) {
  if (!flags.json.empty() && flags.json == flags.csv)
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--json and --csv cannot share the file {}", Quote(flags.json))};
  RunOptions options;
  options.command = std::move(command);
  options.refinement = ParseRefinement(flags.refine);
  options.child = flags.child;
  options.carbon = flags.carbon;
  options.warmup = flags.warmup;
  options.cooldown_limit = Seconds(flags.cooldown_limit);
  options.label = flags.label;
  options.json = flags.json;
  options.csv = flags.csv;
  options.quiet = flags.quiet;
  options.explain = flags.explain;
  options.meter.cpus = !flags.no_cpu;
  options.meter.driver_timeout = Seconds(flags.driver_timeout);
  options.per_node = flags.per_node;
  ZEUS_RETURN_IF_ERROR(FindPlace(flags, options));
  if (!flags.gpus.empty()) {
    ZEUS_TRY(options.meter.gpus, ParseGpus(flags.gpus));
  }
  ZEUS_RETURN_IF_ERROR(InterpretIdle(flags, options));
  options.repeat = flags.repeat;
  if (!options.repeat && flags.warmup > 0) options.repeat = 1;
  if (flags.cooldown != "auto") {
    ZEUS_TRY(const double seconds,
             ParseBetween(flags.cooldown, kLongestWait, "--cooldown", "seconds or auto"));
    options.cooldown = Seconds(seconds);
  }
  return options;
}

std::vector<std::string> RemarksOnWishes() {
  const auto wishes = ReadSchedulerWishes(ProcessEnvironment());
  if (!wishes.ok()) return {wishes.error().message};
  if (!wishes.value().optimize) return {};
  return {
      "ZEUS_MODE=optimize, and zeus run only measures: zeus profile --progress REGEX -- COMMAND "
      "and zeus train look for the best power limit"};
}

Result<int> CommandNotStarted(Error error) {
  const std::optional<int> code = ExitCodeOfUnstarted(error);
  if (!code) return error;
  Complain("zeus", error);
  return *code;
}

Result<std::vector<std::string>> CommandToRun(const Verb& verb, const CommandTail& tail) {
  std::vector<std::string> command = verb.remaining();
  if (!command.empty() && command.front().starts_with('-')) return verb.Unknown(command.front());
  if (!command.empty() && tail.present) command.emplace_back("--");  // The command's own.
  command.insert(command.end(), tail.words.begin(), tail.words.end());
  if (command.empty() || command.front().empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("say what to run: zeus {0} [options] -- COMMAND (see zeus {0} --help)",
                             verb.name())};
  }
  return command;
}

}  // namespace zeus::cli
