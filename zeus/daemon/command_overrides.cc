#include "zeus/daemon/command_overrides.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/daemon/trusted_file.h"
#include "zeus/device/driver_access.h"
#include "zeus/process/run_command.h"

namespace zeus::daemon {
namespace {

constexpr std::size_t kLongestReason = 300;
// A regular expression needs stack for every character of a line.
constexpr std::size_t kLongestLine = 2000;

// The lines of an output, cut to what an expression can be matched against.
std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, std::min(end, kLongestLine)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string LastLine(std::string_view output) {
  const std::string_view text = Trim(output);
  const std::size_t end = text.find_last_of('\n');
  const std::string_view line = end == std::string_view::npos ? text : text.substr(end + 1);
  return Printable(line.substr(0, kLongestReason));
}

std::string EndOf(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

// Why the command counts as failed; empty if it does not.
std::string FailureOf(const CommandOutcome& outcome, const CommandOverrides::Override& override) {
  if (outcome.timed_out)
    return fmt::format("took longer than {:g} s and was killed", override.timeout.count());
  if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0)
    return fmt::format("{}: {}", EndOf(outcome.status), LastLine(outcome.output));
  if (!override.error_pattern) return "";
  for (const std::string_view line : LinesOf(outcome.output))
    if (std::regex_search(line.begin(), line.end(), *override.error_pattern))
      return "printed an error: " + Printable(line.substr(0, kLongestReason));
  return "";
}

std::string Filled(std::string_view word, const CommandOverrides::Values& values) {
  std::string text;
  while (!word.empty()) {
    const std::size_t open = std::min(word.find('{'), word.size());
    text += word.substr(0, open);
    word.remove_prefix(open);
    const std::size_t close = word.find('}');
    if (word.empty()) break;
    const auto value =
        close == std::string_view::npos ? values.end() : values.find(word.substr(1, close - 1));
    if (value == values.end()) {
      text += word.front();
      word.remove_prefix(1);
      continue;
    }
    text += value->second;
    word.remove_prefix(close + 1);
  }
  return text;
}

std::string WholeMegahertz(Hertz clock) {
  return fmt::format("{:.0f}", std::round(clock.value() / 1e6));
}

// A GPU that commands set and the driver reads.
class CommandedGpu final : public Gpu, public DriverAccess {
 public:
  CommandedGpu(std::unique_ptr<Gpu> gpu, std::shared_ptr<const CommandOverrides> overrides,
               std::size_t gpu_id)
      : gpu_(std::move(gpu)), overrides_(std::move(overrides)), gpu_id_(std::to_string(gpu_id)) {}

  const std::string& name() const override { return gpu_->name(); }
  const GpuIdentity& identity() const override { return gpu_->identity(); }
  bool EndsWithProcess() const override { return gpu_->EndsWithProcess(); }
  KnobLender* lender() override { return gpu_->lender(); }
  std::optional<Seconds> LongestReadInterval() const override {
    return gpu_->LongestReadInterval();
  }
  std::shared_ptr<ReadingFeed> Follow() override { return gpu_->Follow(); }
  GpuReading Read() override { return gpu_->Read(); }
  Result<EnergyReading> Energy() override { return gpu_->Energy(); }
  Result<Watts> Power() override { return gpu_->Power(); }
  Result<Watts> Power(PowerKind kind) override { return gpu_->Power(kind); }
  Result<Celsius> Temperature() override { return gpu_->Temperature(); }
  Result<Utilization> CurrentUtilization() override { return gpu_->CurrentUtilization(); }
  Result<MemoryUse> CurrentMemoryUse() override { return gpu_->CurrentMemoryUse(); }
  Result<ThrottleReasons> CurrentThrottleReasons() override {
    return gpu_->CurrentThrottleReasons();
  }
  Result<PowerLimit> CurrentPowerLimit() override { return gpu_->CurrentPowerLimit(); }
  Result<std::vector<Hertz>> SupportedClocks(ClockDomain domain) override {
    return gpu_->SupportedClocks(domain);
  }
  Result<Hertz> CurrentClock(ClockDomain domain) override { return gpu_->CurrentClock(domain); }
  Result<Persistence> CurrentPersistence() override { return gpu_->CurrentPersistence(); }

  Status LetGo() override { return driver_ == nullptr ? Ok() : driver_->LetGo(); }
  void TakeBack() override {
    if (driver_ != nullptr) driver_->TakeBack();
  }
  Result<std::vector<std::string>> Partitions() override {
    if (driver_ != nullptr) return driver_->Partitions();
    return std::vector<std::string>();
  }
  Result<std::vector<ProcessSample>> ProcessSamples(WallTime since) override {
    if (driver_ != nullptr) return driver_->ProcessSamples(since);
    return Error{ErrorCode::kNotSupported, name() + ": its driver tells nothing of processes"};
  }

  Result<PowerLimit> SetPowerLimitWithoutJournal(Watts limit) override;
  Status LockClockWithoutJournal(ClockDomain domain, ClockRange range) override;
  Status ResetClock(ClockDomain domain) override;
  Status SetPersistence(Persistence mode) override;

 private:
  CommandOverrides::Values Values() const { return {{"gpu_id", gpu_id_}}; }
  std::atomic<bool>& Locked(ClockDomain domain) {
    return domain == ClockDomain::kGraphics ? graphics_locked_ : memory_locked_;
  }

  const std::unique_ptr<Gpu> gpu_;
  DriverAccess* const driver_ = DriverAccessOf(*gpu_);  // Null where its driver is in the kernel.
  const std::shared_ptr<const CommandOverrides> overrides_;
  const std::string gpu_id_;
  // By commands.
  std::atomic<bool> graphics_locked_ = false;
  std::atomic<bool> memory_locked_ = false;
};

Result<PowerLimit> CommandedGpu::SetPowerLimitWithoutJournal(Watts limit) {
  if (!overrides_->Has(OverriddenWrite::kSetPowerLimit))
    return gpu_->SetPowerLimitWithoutJournal(limit);
  ZEUS_TRY(const PowerLimit before, gpu_->CurrentPowerLimit());
  if (!(limit >= before.range.min && limit <= before.range.max))
    return InvalidArgument(fmt::format("{} W is outside of the {} to {} W of {}", limit.value(),
                                       before.range.min.value(), before.range.max.value(), name()));
  const std::int64_t milliwatts = std::llround(limit.ToMilli());
  CommandOverrides::Values values = Values();
  values["power_limit_mw"] = std::to_string(milliwatts);
  values["power_limit_w"] = std::to_string(milliwatts / 1000);
  ZEUS_RETURN_IF_ERROR(overrides_->Run(OverriddenWrite::kSetPowerLimit, values));
  ZEUS_TRY(const PowerLimit after, gpu_->CurrentPowerLimit());
  // Commands that take whole watts cut the rest off.
  if (std::abs((after.requested - limit).value()) < 1.0) return after;
  return Error{ErrorCode::kUnavailable,
               fmt::format("the commands of set_power_limit ended without an error, but the limit "
                           "of {} is {} W and not {} W",
                           name(), after.requested.value(), limit.value())};
}

Status CommandedGpu::LockClockWithoutJournal(ClockDomain domain, ClockRange range) {
  const auto write = domain == ClockDomain::kGraphics ? OverriddenWrite::kSetGpuLockedClocks
                                                      : OverriddenWrite::kSetMemLockedClocks;
  if (!overrides_->Has(write)) return gpu_->LockClockWithoutJournal(domain, range);
  CommandOverrides::Values values = Values();
  values["min_clock_mhz"] = WholeMegahertz(range.min);
  values["max_clock_mhz"] = WholeMegahertz(range.max);
  ZEUS_RETURN_IF_ERROR(overrides_->Run(write, values));
  Locked(domain) = true;
  return Ok();
}

Status CommandedGpu::ResetClock(ClockDomain domain) {
  const bool graphics = domain == ClockDomain::kGraphics;
  auto write =
      graphics ? OverriddenWrite::kResetGpuLockedClocks : OverriddenWrite::kResetMemLockedClocks;
  if (!overrides_->Has(write)) {
    if (!overrides_->Has(OverriddenWrite::kResetLockedClocks)) return gpu_->ResetClock(domain);
    write = OverriddenWrite::kResetLockedClocks;
    const ClockDomain other = graphics ? ClockDomain::kMemory : ClockDomain::kGraphics;
    if (Locked(other))
      return Error{ErrorCode::kUnavailable,
                   fmt::format("reset_locked_clocks would unlock the {} clock of {} as well, which "
                               "is in use: write a table {}",
                               ClockDomainName(other), name(),
                               graphics ? "reset_gpu_locked_clocks" : "reset_mem_locked_clocks")};
  }
  ZEUS_RETURN_IF_ERROR(overrides_->Run(write, Values()));
  Locked(domain) = false;
  return Ok();
}

Status CommandedGpu::SetPersistence(Persistence mode) {
  if (!overrides_->Has(OverriddenWrite::kSetPersistenceMode)) return gpu_->SetPersistence(mode);
  CommandOverrides::Values values = Values();
  values["enabled"] = mode == Persistence::kOn ? "1" : "0";
  return overrides_->Run(OverriddenWrite::kSetPersistenceMode, values);
}

}  // namespace

std::string_view Name(OverriddenWrite write) {
  constexpr std::array<std::string_view, 7> kNames = {
      "set_persistence_mode",    "set_power_limit",       "set_gpu_locked_clocks",
      "reset_gpu_locked_clocks", "set_mem_locked_clocks", "reset_mem_locked_clocks",
      "reset_locked_clocks"};
  return kNames.at(static_cast<std::size_t>(write));
}

Result<std::vector<std::string>> SplitCommand(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string> words;
  std::size_t at = line.find_first_not_of(kBlanks);
  while (at != std::string_view::npos) {
    std::string word;
    while (at < line.size() && kBlanks.find(line[at]) == std::string_view::npos) {
      const char c = line[at++];
      if (c != '"' && c != '\'') {
        word += c;
        continue;
      }
      const std::size_t end = line.find(c, at);
      if (end == std::string_view::npos) return InvalidArgument(fmt::format("{} has no end", c));
      word += line.substr(at, end - at);
      at = end + 1;
    }
    words.push_back(std::move(word));
    at = line.find_first_not_of(kBlanks, at);
  }
  return words;
}

Result<CommandOverrides> CommandOverrides::Read(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadTrustedFile(file));
  return Parse(text, file.string());
}

Status CommandOverrides::Run(OverriddenWrite write, const Values& values) const {
  const Override& override = overrides_.at(write);
  for (const std::vector<std::string>& command : override.commands) {
    std::vector<std::string> words;
    for (const std::string& word : command) words.push_back(Filled(word, values));
    const auto outcome = RunCommand(words, override.timeout);
    std::string failure =
        outcome.ok() ? FailureOf(outcome.value(), override) : outcome.error().message;
    if (failure.empty()) continue;
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{}: {} {}", Name(write), Quote(words.front()), failure)};
  }
  return Ok();
}

void SetByCommands(std::vector<std::unique_ptr<Gpu>>& gpus,
                   std::shared_ptr<const CommandOverrides> overrides) {
  std::vector<std::unique_ptr<Gpu>*> in_pci_order;
  for (auto& gpu : gpus) in_pci_order.push_back(&gpu);
  std::ranges::stable_sort(in_pci_order, {}, [](const std::unique_ptr<Gpu>* gpu) {
    return (*gpu)->identity().pci_address;
  });
  for (std::size_t id = 0; id < in_pci_order.size(); ++id) {
    std::unique_ptr<Gpu>& gpu = *in_pci_order[id];
    gpu = std::make_unique<CommandedGpu>(std::move(gpu), overrides, id);
  }
}

}  // namespace zeus::daemon
