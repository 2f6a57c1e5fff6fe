// The TOML form of command overrides.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/daemon/command_overrides.h"
#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

constexpr double kLongestTimeout = 3600;
constexpr std::size_t kMostCommands = 16;

constexpr std::array kWrites = {
    OverriddenWrite::kSetPersistenceMode, OverriddenWrite::kSetPowerLimit,
    OverriddenWrite::kSetGpuLockedClocks, OverriddenWrite::kResetGpuLockedClocks,
    OverriddenWrite::kSetMemLockedClocks, OverriddenWrite::kResetMemLockedClocks,
    OverriddenWrite::kResetLockedClocks};

std::vector<std::string> PlaceholdersOf(OverriddenWrite write) {
  switch (write) {
    case OverriddenWrite::kSetPersistenceMode:
      return {"gpu_id", "enabled"};
    case OverriddenWrite::kSetPowerLimit:
      return {"gpu_id", "power_limit_mw", "power_limit_w"};
    case OverriddenWrite::kSetGpuLockedClocks:
    case OverriddenWrite::kSetMemLockedClocks:
      return {"gpu_id", "min_clock_mhz", "max_clock_mhz"};
    case OverriddenWrite::kResetGpuLockedClocks:
    case OverriddenWrite::kResetMemLockedClocks:
    case OverriddenWrite::kResetLockedClocks:
      break;
  }
  return {"gpu_id"};
}

// Reads one table. Every error has the line that it is about.
class OverrideReader {
 public:
  OverrideReader(const std::string& source, OverriddenWrite write)
      : source_(Printable(source)), write_(write) {}

  Result<CommandOverrides::Override> Read(const toml::table& table) const {
    CommandOverrides::Override override;
    for (const auto& [key, value] : table) {
      if (key.str() == "commands") {
        ZEUS_TRY(override.commands, ReadCommands(value));
      } else if (key.str() == "error_pattern") {
        ZEUS_TRY(override.error_pattern, ReadPattern(value));
      } else if (key.str() == "timeout_s") {
        ZEUS_TRY(override.timeout, ReadTimeout(value));
      } else {
        return At(value, fmt::format("{} is no key of [{}]: it may have commands, error_pattern, "
                                     "timeout_s",
                                     Quote(key.str()), Name(write_)));
      }
    }
    if (override.commands.empty())
      return At(table, fmt::format("[{}] needs commands = [\"…\"]", Name(write_)));
    return override;
  }

 private:
  Error At(const toml::node& node, std::string_view why) const {
    return InvalidArgument(fmt::format("{}:{}: {}", source_, node.source().begin.line, why));
  }

  Result<std::vector<std::vector<std::string>>> ReadCommands(const toml::node& node) const {
    const toml::array* list = node.as_array();
    if (list == nullptr || list->empty() || list->size() > kMostCommands)
      return At(node, fmt::format("commands must be a list of 1 to {} texts", kMostCommands));
    std::vector<std::vector<std::string>> commands;
    for (const toml::node& element : *list) {
      const auto text = element.value<std::string>();
      if (!element.is_string() || text->find('\0') != std::string::npos)
        return At(element, "a command must be a text in quotation marks");
      auto words = SplitCommand(*text);
      if (!words.ok()) return At(element, "commands: " + words.error().message);
      if (words.value().empty()) return At(element, "a command is empty");
      for (const std::string& word : words.value())
        if (const Status known = CheckPlaceholders(word); !known.ok())
          return At(element, known.error().message);
      commands.push_back(std::move(words).value());
    }
    return commands;
  }

  Status CheckPlaceholders(std::string_view word) const {
    const std::vector<std::string> known = PlaceholdersOf(write_);
    for (std::size_t open = word.find('{'); open != std::string_view::npos;
         open = word.find('{', open + 1)) {
      const std::size_t close = word.find('}', open);
      if (close == std::string_view::npos) break;
      const std::string name(word.substr(open + 1, close - open - 1));
      if (std::ranges::find(known, name) == known.end())
        return InvalidArgument(fmt::format("{} is no placeholder of [{}]: there are {{{}}}",
                                           Quote("{" + name + "}"), Name(write_),
                                           fmt::join(known, "}, {")));
    }
    return Ok();
  }

  Result<std::regex> ReadPattern(const toml::node& node) const {
    auto text = node.value<std::string>();
    if (!node.is_string()) return At(node, "error_pattern must be a text in quotation marks");
    auto flags = std::regex::ECMAScript;
    if (text->starts_with("(?i)")) {
      flags |= std::regex::icase;
      text->erase(0, 4);
    }
    try {
      return std::regex(*text, flags);
    } catch (const std::regex_error&) {
      return At(node, fmt::format("error_pattern: {} is no regular expression", Quote(*text)));
    }
  }

  Result<Seconds> ReadTimeout(const toml::node& node) const {
    const auto seconds = node.is_number() ? node.value<double>() : std::nullopt;
    if (!seconds || !(*seconds > 0 && *seconds <= kLongestTimeout))
      return At(node,
                fmt::format("timeout_s must be more than 0, and {} at most", kLongestTimeout));
    return Seconds(*seconds);
  }

  const std::string source_;
  const OverriddenWrite write_;
};

}  // namespace

Result<CommandOverrides> CommandOverrides::Parse(std::string_view toml, const std::string& source) {
  toml::table root;
  try {
    root = toml::parse(toml);
  } catch (const toml::parse_error& error) {
    return InvalidArgument(fmt::format("{}:{}: {}", Printable(source), error.source().begin.line,
                                       Printable(error.description())));
  }
  CommandOverrides overrides;
  for (const auto& [key, value] : root) {
    const auto write = std::ranges::find(kWrites, key.str(), Name);
    const toml::table* table = value.as_table();
    if (write == kWrites.end() || table == nullptr) {
      std::vector<std::string_view> names;
      for (const OverriddenWrite one : kWrites) names.push_back(Name(one));
      return InvalidArgument(fmt::format("{}:{}: {} is no table of commands: there are {}",
                                         Printable(source), value.source().begin.line,
                                         Quote(key.str()), fmt::join(names, ", ")));
    }
    ZEUS_TRY(overrides.overrides_[*write], OverrideReader(source, *write).Read(*table));
  }
  return overrides;
}

}  // namespace zeus::daemon
