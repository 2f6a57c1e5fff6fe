#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/result.h"
#include "zeus/base/units.h"
#include "zeus/device/gpu.h"

namespace zeus::daemon {

// The writes that commands can do in the place of the driver, by the names of their tables.
enum class OverriddenWrite {
  kSetPersistenceMode,
  kSetPowerLimit,
  kSetGpuLockedClocks,
  kResetGpuLockedClocks,
  kSetMemLockedClocks,
  kResetMemLockedClocks,
  kResetLockedClocks,
};
std::string_view Name(OverriddenWrite write);  // "set_power_limit"

// Commands that set knobs of GPUs in the place of the driver (zeusd serve --gpu-command-overrides):
// for machines where a vendor's script may be run with sudo and the daemon may not set anything
// itself. Values are read by the driver as always, so a command that did nothing is noticed.
//
// A command is words without a shell; commands of a table run one after the other, and the first
// that fails ends it. Immutable and thread-safe.
class CommandOverrides {
 public:
  struct Override {
    std::vector<std::vector<std::string>> commands{};  // Words with placeholders.
    std::optional<std::regex> error_pattern{};         // Output that means failure.
    Seconds timeout{60};                               // For each command.
  };

  // kInvalidArgument names the file, the line and the fix. `source` is the name of the file.
  static Result<CommandOverrides> Parse(std::string_view toml, const std::string& source);
  // The file must be as ReadTrustedFile() wants it: whoever can write it, commands the daemon.
  static Result<CommandOverrides> Read(const std::filesystem::path& file);

  bool Has(OverriddenWrite write) const { return overrides_.contains(write); }

  // The values of placeholders: {gpu_id}, {power_limit_mw}, {power_limit_w}, {min_clock_mhz},
  // {max_clock_mhz}, {enabled}.
  using Values = std::map<std::string, std::string, std::less<>>;
  // Runs the commands of a table. kUnavailable with the end of the output when one fails.
  Status Run(OverriddenWrite write, const Values& values) const;

  bool empty() const { return overrides_.empty(); }

 private:
  std::map<OverriddenWrite, Override> overrides_{};
};

// The words of a command line: separated by blanks, kept together by quotation marks.
// kInvalidArgument for marks without an end.
Result<std::vector<std::string>> SplitCommand(std::string_view line);

// The GPUs, set by commands where there are some for it. The position in PCI order is {gpu_id}.
void SetByCommands(std::vector<std::unique_ptr<Gpu>>& gpus,
                   std::shared_ptr<const CommandOverrides> overrides);

}  // namespace zeus::daemon
