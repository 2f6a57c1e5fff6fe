#include "apps/zeus/configuration/config_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/zeus/configuration/configuration.h"
#include "apps/zeus/output.h"
#include "zeus/base/json.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

struct Row {
  std::string key;    // "sim.start.gpus"
  std::string value;  // Empty where there is no default.
  std::string from;
  std::string instead_of{};  // The weaker places that also have a value.
};

std::string Key(const std::string& verb, const std::string& option) {
  std::string key = verb.empty() ? option : verb + "." + option;
  std::ranges::replace(key, ' ', '.');
  return key;
}

// "sim start" of "zeus sim start".
std::string Below(const VerbDescription& verb) {
  const std::size_t blank = verb.path.find(' ');
  return blank == std::string::npos ? "" : verb.path.substr(blank + 1);
}

std::vector<std::string> LongNames(const OptionDescription& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names)
    if (name.starts_with("--") && name != "--help" && !option.positional)
      names.push_back(name.substr(2));
  return names;
}

// A database's address may have a password in it.
std::string Shown(const std::string& value) {
  const std::size_t scheme = value.find("://");
  const std::size_t at = value.find('@');
  const bool secret = scheme != std::string::npos && at != std::string::npos && at > scheme;
  return secret ? value.substr(0, scheme + 3) + "…" + value.substr(at) : value;
}

Row Strongest(const std::string& key, const std::vector<ConfiguredValue>& settings) {
  std::vector<std::string> weaker;
  for (std::size_t i = 0; i + 1 < settings.size(); ++i) weaker.push_back(settings[i].origin);
  return {.key = key,
          .value = Shown(fmt::format("{}", fmt::join(settings.back().values, ", "))),
          .from = settings.back().origin,
          .instead_of = fmt::format("{}", fmt::join(weaker, ", "))};
}

class Collector {
 public:
  Collector(const Configuration& configuration, bool defaults)
      : configuration_(configuration), defaults_(defaults) {}

  void AddVerb(const VerbDescription& verb) {
    for (const OptionDescription& option : verb.options) {
      const auto names = LongNames(option);
      if (names.empty()) continue;
      const std::string key = Key(Below(verb), names.front());
      const auto settings = configuration_.FindAll(
          {.verb = Below(verb), .names = names, .flag = option.value.empty()});
      if (!settings.empty())
        rows_.push_back(Strongest(key, settings));
      else if (defaults_)
        rows_.push_back({.key = key,
                         .value = option.default_text,
                         .from = option.default_text.empty() ? "not set" : "default"});
    }
    for (const VerbDescription& below : verb.verbs) AddVerb(below);
  }

  void AddLog() {
    for (const char* const option : {"level", "format"})
      if (const auto settings = configuration_.FindAll({.verb = "log", .names = {option}});
          !settings.empty())
        rows_.push_back(Strongest(Key("log", option), settings));
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  const Configuration& configuration_;
  bool defaults_;
  std::vector<Row> rows_;
};

Result<const VerbDescription*> FindVerb(const VerbDescription& program,
                                        const std::vector<std::string>& words) {
  const VerbDescription* verb = &program;
  for (const std::string& word : words) {
    const auto below = std::ranges::find(verb->verbs, word, &VerbDescription::name);
    if (below == verb->verbs.end())
      return Error{ErrorCode::kNotFound, fmt::format("{} has no verb {}", verb->path, Quote(word))};
    verb = &*below;
  }
  return verb;
}

void PrintRows(const std::vector<Row>& rows, const ConfigurationPlaces& places) {
  if (rows.empty()) {
    std::vector<std::string> files;
    for (const auto& file : places.files) files.push_back(file.string());
    PrintText(fmt::format(
        "nothing is configured: {} have no values (zeus help configuration)\n",
        files.empty() ? "the environment and no file" : fmt::format("{}", fmt::join(files, ", "))));
    return;
  }
  std::vector<std::vector<std::string>> cells = {{"option", "value", "from"}};
  for (const Row& row : rows)
    cells.push_back({row.key, row.value.empty() ? "-" : row.value,
                     row.instead_of.empty()
                         ? row.from
                         : fmt::format("{} (stronger than {})", row.from, row.instead_of)});
  PrintText(AlignedRows({Align::kLeft, Align::kLeft, Align::kLeft}, cells));
}

void PrintRowsAsJson(const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    Json one = {{"option", row.key}, {"from", row.from}};
    one["value"] = row.value.empty() ? Json() : Json(row.value);
    list.push_back(std::move(one));
  }
  PrintJson(list);
}

Result<int> Show(const CommandLine& line, const std::vector<std::string>& words, bool json) {
  const VerbDescription program = line.Describe();
  ZEUS_TRY(const VerbDescription* const verb, FindVerb(program, words));
  ZEUS_TRY(const Configuration configuration,
           Configuration::Read(line.configuration_places(), [&line] { return line.Describe(); }));
  Collector collector(configuration, !words.empty());
  collector.AddVerb(*verb);
  if (words.empty()) collector.AddLog();
  if (json)
    PrintRowsAsJson(collector.rows());
  else
    PrintRows(collector.rows(), line.configuration_places());
  return 0;
}

}  // namespace

void AddConfigCommand(CommandLine& line, Action& action) {
  const Verb config =
      line.program().AddVerb("config", "Defaults of options, from files and the environment");
  config.RequireVerb();
  auto words = std::make_shared<std::vector<std::string>>();
  auto json = std::make_shared<bool>(false);
  const Verb show =
      config.AddVerb("show", "Show what is configured, and where each value comes from");
  show.AddOption("verb", *words, "Show all options of this verb, those with defaults, too");
  show.AddFlag("--json", *json, "Print JSON");
  show.OnChosen([&line, &action, words, json] {
    action = [&line, words, json] { return Show(line, *words, *json); };
  });
}

}  // namespace zeus::cli
