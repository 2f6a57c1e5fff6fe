#include "zeus/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/base/log_form.h"
#include "zeus/base/terminal_text.h"

namespace zeus::log {
namespace {

constexpr std::array<spdlog::level::level_enum, 5> kSpdlogLevels = {
    spdlog::level::debug, spdlog::level::info, spdlog::level::warn, spdlog::level::err,
    spdlog::level::off};

spdlog::level::level_enum ToSpdlog(Level level) {
  return kSpdlogLevels.at(static_cast<std::size_t>(level));
}

spdlog::level::level_enum LevelFromEnvironment() {
  const char* text = std::getenv("ZEUS_LOG_LEVEL");
  if (text == nullptr) return spdlog::level::warn;
  const auto level = spdlog::level::from_str(text);
  // from_str answers "off" for words it does not know; silence must be asked for by name.
  return level == spdlog::level::off && std::string_view(text) != "off" ? spdlog::level::warn
                                                                        : level;
}

std::atomic<Form>& FormOfLog() {
  static std::atomic<Form> form = [] {
    const char* text = std::getenv("ZEUS_LOG_FORMAT");
    return text != nullptr && std::string_view(text) == "json" ? Form::kJson : Form::kText;
  }();
  return form;
}

constexpr const char* kTextPattern = "zeus: %^%l%$: %v";
// The message comes as a JSON text already, in its quotation marks.
constexpr const char* kJsonPattern =
    R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","program":"zeus","message":%v})";

void SetPattern(spdlog::logger& logger, Form form) {
  if (form == Form::kJson)
    logger.set_pattern(kJsonPattern, spdlog::pattern_time_type::utc);
  else
    logger.set_pattern(kTextPattern);
}

// Leaked on purpose: threads may still log while static objects are destroyed.
spdlog::logger& Logger() {
  static spdlog::logger& logger = *[] {
    auto* made =
        new spdlog::logger("zeus", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    SetPattern(*made, FormOfLog());
    made->set_level(LevelFromEnvironment());
    return made;
  }();
  return logger;
}

}  // namespace

void SetLevel(Level level) { Logger().set_level(ToSpdlog(level)); }
void SetForm(Form form) {
  FormOfLog() = form;
  SetPattern(Logger(), form);
}
Form CurrentForm() { return FormOfLog(); }
bool Enabled(Level level) { return Logger().should_log(ToSpdlog(level)); }
void Write(Level level, std::string_view message) {
  Logger().log(ToSpdlog(level), CurrentForm() == Form::kJson
                                    ? JsonForTerminal(JsonText(std::string(message)))
                                    : OneLineForTerminal(message));
}

}  // namespace zeus::log
