#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

// Diagnostics for people, on standard error. Data a user asked for never goes through here.
// Thread-safe. The level is "warning" unless ZEUS_LOG_LEVEL (debug, info, warning, error, off) or
// SetLevel() says otherwise. spdlog does the work and is seen only by log.cc.
namespace zeus::log {

enum class Level { kDebug, kInfo, kWarning, kError, kOff };

void SetLevel(Level level);
bool Enabled(Level level);
void Write(Level level, std::string_view message);

template <class... Args>
void Format(Level level, fmt::format_string<Args...> format, Args&&... args) {
  if (Enabled(level)) Write(level, fmt::format(format, std::forward<Args>(args)...));
}

template <class... Args>
void Debug(fmt::format_string<Args...> format, Args&&... args) {
  Format(Level::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void Info(fmt::format_string<Args...> format, Args&&... args) {
  Format(Level::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void Warning(fmt::format_string<Args...> format, Args&&... args) {
  Format(Level::kWarning, format, std::forward<Args>(args)...);
}
template <class... Args>
void Failure(fmt::format_string<Args...> format, Args&&... args) {
  Format(Level::kError, format, std::forward<Args>(args)...);
}

}  // namespace zeus::log
