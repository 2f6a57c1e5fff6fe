#include <fmt/format.h>

#include <array>
#include <cmath>
#include <memory>
#include <optional>

#include "apps/zeus/numbers.h"
#include "apps/zeus/sim/commands.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr double kLatestBeginning = 1e9;  // Seconds.
constexpr double kLeastProbability = 1e-6;

struct FaultOptions {
  SimTarget target;
  std::string kind;
  std::optional<double> at;
  std::optional<double> probability;
};

enum class Parameter { kNone, kPower, kDuration };

struct KindName {
  std::string_view name;
  sim::FaultKind kind;
  Parameter parameter = Parameter::kNone;
  std::string_view example = "";
};

constexpr std::array kKinds = {
    KindName{"lost", sim::FaultKind::kLost},
    KindName{"reset", sim::FaultKind::kDriverReload},
    KindName{"frozen", sim::FaultKind::kCounterFrozen},
    KindName{"na-power", sim::FaultKind::kPowerUnavailable},
    KindName{"no-permission", sim::FaultKind::kNoPermission},
    KindName{"not-supported", sim::FaultKind::kSetterUnsupported},
    KindName{"oob-cap", sim::FaultKind::kOutOfBandCap, Parameter::kPower, "oob-cap:200W"},
    KindName{"slow", sim::FaultKind::kSlowCall, Parameter::kDuration, "slow:50ms"},
    KindName{"clock-reset", sim::FaultKind::kClockReset},
    KindName{"mig", sim::FaultKind::kMigEnabled},
};

std::string KnownKinds() {
  std::string known;
  for (const KindName& kind : kKinds)
    known += fmt::format("{}, ", kind.example.empty() ? kind.name : kind.example);
  return known + "clear";
}

Error BadKind(std::string_view text) {
  return {ErrorCode::kInvalidArgument,
          fmt::format("bad fault {}: use one of {}", Quote(text), KnownKinds())};
}

// "200W" → 200, if it ends in the unit and is a positive number.
std::optional<double> Quantity(std::string_view text, std::string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  const auto number = ParseDouble(text.substr(0, text.size() - unit.size()));
  if (!number.ok() || !std::isfinite(number.value()) || number.value() <= 0) return std::nullopt;
  return number.value();
}

std::optional<Seconds> Duration(std::string_view text) {
  if (const auto milliseconds = Quantity(text, "ms"))
    return std::chrono::duration<double, std::milli>(*milliseconds);
  if (const auto seconds = Quantity(text, "s")) return Seconds(*seconds);
  return std::nullopt;
}

Result<sim::Fault> ParseKind(std::string_view text) {
  const auto colon = text.find(':');
  const bool has_value = colon != std::string_view::npos;
  const std::string_view value = has_value ? text.substr(colon + 1) : "";
  for (const KindName& known : kKinds) {
    if (known.name != text.substr(0, colon)) continue;
    if (has_value != (known.parameter != Parameter::kNone)) return BadKind(text);
    sim::Fault fault{.kind = known.kind};
    if (known.parameter == Parameter::kPower) {
      const auto watts = Quantity(value, "W");
      if (!watts) return BadKind(text);
      fault.cap = Watts(*watts);
    }
    if (known.parameter == Parameter::kDuration) {
      const auto delay = Duration(value);
      if (!delay) return BadKind(text);
      fault.delay = *delay;
    }
    return fault;
  }
  return BadKind(text);
}

Status ApplyTiming(const FaultOptions& options, sim::Fault& fault) {
  if (options.at) fault.at = Seconds(*options.at);
  if (!options.probability) return Ok();
  if (!sim::HitsCalls(fault.kind)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--probability means nothing for {}: it concerns no single calls",
                             Quote(options.kind))};
  }
  fault.probability = *options.probability;
  return Ok();
}

Result<int> Clear(const FaultOptions& options) {
  if (options.at || options.probability) {
    return Error{ErrorCode::kInvalidArgument,
                 "clear takes neither --at nor --probability: it ends all faults at once"};
  }
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(sim::SharedNode node, directory.Open(options.target.name, sim::Access::kWrite));
  ZEUS_RETURN_IF_ERROR(node.Update(options.target.gpu, [](sim::GpuCore& core) {
    core.ClearFaults();
    return Ok();
  }));
  fmt::print("GPU {} of node \"{}\" has no faults\n", options.target.gpu, node.name());
  return 0;
}

Result<int> Inject(const FaultOptions& options) {
  if (options.kind == "clear") return Clear(options);
  ZEUS_TRY(sim::Fault fault, ParseKind(options.kind));
  ZEUS_RETURN_IF_ERROR(ApplyTiming(options, fault));
  if (auto checked = sim::CheckFault(fault); !checked.ok())
    return std::move(checked).error().While(fmt::format("bad fault {}", Quote(options.kind)));
  SystemClock clock;
  ZEUS_TRY(const auto directory, sim::NodeDirectory::FromEnvironment(clock));
  ZEUS_TRY(sim::SharedNode node, directory.Open(options.target.name, sim::Access::kWrite));
  ZEUS_RETURN_IF_ERROR(
      node.Update(options.target.gpu, [&](sim::GpuCore& core) { return core.InjectFault(fault); }));
  fmt::print("GPU {} of node \"{}\": {}\n", options.target.gpu, node.name(), options.kind);
  return 0;
}

}  // namespace

void AddSimFault(CLI::App& sim, Action& action) {
  auto options = std::make_shared<FaultOptions>();
  CLI::App* command = sim.add_subcommand("fault", "Let something go wrong on a simulated GPU");
  AddNameOption(*command, options->target.name);
  AddGpuOption(*command, options->target.gpu);
  command->add_option("--kind", options->kind, KnownKinds())->required();
  command->add_option("--at", options->at, "Node time in seconds at which it begins (now)")
      ->check(NumberBetween(0, kLatestBeginning));
  command->add_option("--probability", options->probability, "Share of calls that it hits (1)")
      ->check(NumberBetween(kLeastProbability, 1));
  command->callback([options, &action] { action = [options] { return Inject(*options); }; });
}

}  // namespace zeus::cli
