#include "apps/zeus/profile/profile_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "apps/zeus/lists.h"
#include "apps/zeus/numbers.h"
#include "zeus/base/text.h"
#include "zeus/optimizer/power_limit/scheduler_wishes.h"

namespace zeus::cli {
namespace {

constexpr double kMostSetting = 1e5;
constexpr double kLongest = 31 * 86400;
constexpr Seconds kShortestSlice{0.1};

void AddSearchFlags(Verb verb, ProfileFlags& flags) {
  constexpr std::uint64_t kMostRounds = 100000;
  verb.AddOption("--gpus", flags.gpus, "Limit and measure only these GPUs, as in 0,1")
      .Check(NotEmpty());
  verb.AddOption("--driver-timeout", flags.driver_timeout,
                 "Seconds that drivers may take to find their devices; one that takes longer is "
                 "an error that names its GPU")
      .Check(NumberBetween(0.01, 86400))
      .ShowDefault();
  verb.AddOption("--knob", flags.knob,
                 "What to turn: gpu_power_limit, graphics_clock or cpu_power_limit")
      .Check(NotEmpty())
      .ShowDefault();
  verb.AddOption("--limits", flags.limits, "Try these, as in 250,200,150 (watts, or megahertz)")
      .Check(NotEmpty());
  verb.AddOption("--stride", flags.stride,
                 "Or try from the one that was found down by this much (25 W, or 15 supported "
                 "clocks)")
      .Check(NumberBetween(1, kMostSetting));
  verb.AddFlag("--may-raise", flags.may_raise,
               "Also try settings above the one that was found, up to what the device allows");
  verb.AddOption("--slice", flags.slice, "How long each is measured at most: 5s, 500ms, 2min")
      .ShowDefault();
  verb.AddOption("--warmup", flags.warmup, "How long each is left alone before that").ShowDefault();
  verb.AddOption("--rounds", flags.rounds,
                 "Repeat the sweep, every other time in reverse, so that drift cancels")
      .Check(WholeNumberBetween(1, kMostRounds))
      .ShowDefault();
}

void AddProgressFlags(Verb verb, ProfileFlags& flags) {
  verb.AddOption("--progress", flags.progress,
                 "Regular expression on the command's output: its first group is the number of "
                 "steps done, as in 'step (\\d+)'; without a group each match is a step")
      .Check(NotEmpty());
  verb.AddOption("--progress-file", flags.progress_file,
                 "File whose last line is the number of steps done, or that has a line per step")
      .Check(NotEmpty());
}

void AddResultFlags(Verb verb, ProfileFlags& flags) {
  verb.AddOption("--eta", flags.objectives.eta,
                 "What energy is worth against time: 0 (time) to 1 (energy)")
      .Check(NumberBetween(0, 1))
      .ShowDefault();
  constexpr double kMostSlowdown = 1000;
  verb.AddOption("--max-slowdown", flags.objectives.max_slowdown,
                 "Also find the lowest that takes at most so many times as long, as in 1.1; also "
                 "from ZEUS_MAX_SLOWDOWN, which srun --zeus-max-slowdown sets")
      .Check(NumberBetween(1, kMostSlowdown));
  verb.AddFlag("--keep", flags.keep,
               "Leave the best one set for the rest of the command (for --max-slowdown if given, "
               "else for --eta); also with ZEUS_MODE=optimize, which srun --zeus=optimize sets");
  verb.AddFlag("--until-done", flags.until_done, "Repeat the sweep until the command ends");
  verb.AddFlag("--stop", flags.stop, "End the command after the sweep");
  verb.AddOption("--json", flags.json, "Write the result to this file (- for standard output)")
      .Check(NotEmpty());
  verb.AddOption("--csv", flags.csv, "Append a row per setting to this file").Check(NotEmpty());
  verb.AddOption("--svg", flags.svg, "Write a plot to this file").Check(NotEmpty());
  verb.AddOption("--html", flags.html, "Write a report to this file").Check(NotEmpty());
  verb.AddOption("--save", flags.save, "Write the profile for later jobs to this file")
      .Check(NotEmpty());
  verb.AddOption("--label", flags.label, "A name that the results carry");
  verb.AddFlag("--quiet", flags.quiet, "No table on standard error");
}

Status CheckTogether(const ProfileFlags& flags) {
  if (!flags.limits.empty() && flags.stride)
    return InvalidArgument("--limits and --stride both say what to try: give one of them");
  if (!flags.progress.empty() && !flags.progress_file.empty())
    return InvalidArgument("--progress and --progress-file both count steps: give one of them");
  if (int{flags.keep} + int{flags.until_done} + int{flags.stop} > 1)
    return InvalidArgument("--keep, --until-done and --stop exclude each other: give one of them");
  if (flags.keep && flags.progress.empty() && flags.progress_file.empty())
    return InvalidArgument(
        "--keep needs --progress or --progress-file: without steps nothing is best");
  std::vector<std::string> files;
  for (const std::string& file : {flags.json, flags.csv, flags.svg, flags.html, flags.save})
    if (!file.empty()) files.push_back(file);
  std::ranges::sort(files);
  const auto twice = std::ranges::adjacent_find(files);
  if (twice != files.end())
    return InvalidArgument(fmt::format("two results cannot share the file {}", Quote(*twice)));
  return Ok();
}

AfterSearch ChooseAfterSearch(const ProfileFlags& flags) {
  if (flags.keep) return AfterSearch::kKeep;
  return flags.stop ? AfterSearch::kStop : AfterSearch::kRestore;
}

// Wishes of the scheduler's user hold where the options say nothing else.
Status FollowWishes(const ProfileFlags& flags, ProfileOptions& options) {
  ZEUS_TRY(const SchedulerWishes wishes, ReadSchedulerWishes(ProcessEnvironment()));
  if (!options.objectives.max_slowdown) options.objectives.max_slowdown = wishes.max_slowdown;
  const bool counts_steps = !flags.progress.empty() || !flags.progress_file.empty();
  const bool free_to_keep = !flags.stop && !flags.until_done;
  if (wishes.optimize && counts_steps && free_to_keep) options.after = AfterSearch::kKeep;
  return Ok();
}

}  // namespace

void AddProfileFlags(Verb verb, ProfileFlags& flags) {
  AddSearchFlags(verb, flags);
  AddProgressFlags(verb, flags);
  AddResultFlags(verb, flags);
}

Result<std::vector<Setting>> ParseLimits(const std::string& text, KnobKind knob) {
  std::vector<double> numbers;
  for (const std::string_view part : SplitAtCommas(text)) {
    const auto number = ParseDouble(part);
    if (!number.ok() || !(number.value() > 0 && number.value() <= kMostSetting)) {
      return InvalidArgument(
          fmt::format("--limits takes watts, or megahertz of a clock, as in 250,200,150, "
                      "not {}",
                      Quote(text)));
    }
    numbers.push_back(number.value());
  }
  std::ranges::sort(numbers, std::greater<>());
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::vector<Setting> settings;
  for (const double number : numbers) settings.push_back(SettingOf(knob, number));
  return settings;
}

Result<Seconds> ParseDuration(const std::string& text, const char* option) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  // Longer names first: "ms" ends with "s".
  constexpr std::array kUnits = {Unit{"ms", 1e-3}, Unit{"min", 60}, Unit{"s", 1}, Unit{"h", 3600}};
  std::string_view number = Trim(text);
  double scale = 1;
  for (const Unit& unit : kUnits) {
    if (!number.ends_with(unit.name)) continue;
    number = Trim(number.substr(0, number.size() - unit.name.size()));
    scale = unit.seconds;
    break;
  }
  const auto value = ParseDouble(number);
  if (value.ok() && value.value() >= 0 && value.value() * scale <= kLongest)
    return Seconds(value.value() * scale);
  return InvalidArgument(
      fmt::format("{} takes a duration as in 5s, 500ms, 2min or 6h, not {}", option, Quote(text)));
}

Result<ProfileInvocation> Interpret(const ProfileFlags& flags, std::vector<std::string> command) {
  ZEUS_RETURN_IF_ERROR(CheckTogether(flags));
  ProfileInvocation invocation;
  ProfileOptions& options = invocation.session;
  options.command = std::move(command);
  ZEUS_TRY(invocation.knob, ParseKnobKind(flags.knob));
  if (!flags.gpus.empty()) {
    if (invocation.knob == KnobKind::kCpuPowerLimit)
      return InvalidArgument(
          "--gpus does not go with --knob cpu_power_limit, which limits the CPUs");
    ZEUS_TRY(invocation.gpus, ParseGpus(flags.gpus));
  }
  if (!flags.limits.empty()) {
    ZEUS_TRY(options.settings, ParseLimits(flags.limits, invocation.knob));
  }
  invocation.driver_timeout = Seconds(flags.driver_timeout);
  options.stride = SettingOf(invocation.knob, flags.stride.value_or(0));
  invocation.ceiling = flags.may_raise ? Ceiling::kOfDevice : Ceiling::kAsFound;
  ZEUS_TRY(options.plan.slice, ParseDuration(flags.slice, "--slice"));
  ZEUS_TRY(options.plan.warmup, ParseDuration(flags.warmup, "--warmup"));
  if (options.plan.slice < kShortestSlice)
    return InvalidArgument("--slice must be at least 100ms: sensors show nothing new in less");
  options.plan.rounds = flags.until_done ? std::nullopt : std::optional(flags.rounds);
  if (!flags.progress.empty()) {
    auto pattern = ProgressPattern::Compile(flags.progress);
    if (!pattern.ok()) return InvalidArgument("--" + pattern.error().message);
    options.pattern = std::move(pattern).value();
  }
  options.progress_file = flags.progress_file;
  options.objectives = flags.objectives;
  options.after = ChooseAfterSearch(flags);
  ZEUS_RETURN_IF_ERROR(FollowWishes(flags, options));
  options.label = flags.label;
  invocation.files = {flags.json, flags.csv, flags.svg, flags.html, flags.save};
  invocation.quiet = flags.quiet;
  return invocation;
}

}  // namespace zeus::cli
