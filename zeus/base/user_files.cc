#include "zeus/base/user_files.h"

#include <cstdlib>

namespace zeus {

Environment ProcessEnvironment() {
  return [](const std::string& variable) -> std::optional<std::string> {
    const char* const value = std::getenv(variable.c_str());
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
  };
}

std::optional<std::filesystem::path> UserFolder(const Environment& environment,
                                                std::string_view kind) {
  if (const auto config = environment("XDG_CONFIG_HOME"); config && !config->empty())
    return std::filesystem::path(*config) / "zeus" / kind;
  if (const auto home = environment("HOME"); home && !home->empty())
    return std::filesystem::path(*home) / ".config" / "zeus" / kind;
  return std::nullopt;
}

std::optional<std::filesystem::path> UserDataFolder(const Environment& environment,
                                                    std::string_view kind) {
  if (const auto data = environment("XDG_DATA_HOME"); data && !data->empty())
    return std::filesystem::path(*data) / "zeus" / kind;
  if (const auto home = environment("HOME"); home && !home->empty())
    return std::filesystem::path(*home) / ".local" / "share" / "zeus" / kind;
  return std::nullopt;
}

std::string FileNamePart(std::string_view text) {
  std::string part(text.empty() ? "unknown" : text);
  for (char& c : part) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.';
    if (!plain) c = '-';
  }
  return part;
}

}  // namespace zeus
