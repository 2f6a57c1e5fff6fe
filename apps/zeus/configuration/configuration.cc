// The TOML form of the configuration. The only file of this folder that knows toml++.
#include "apps/zeus/configuration/configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iterator>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "zeus/base/log.h"
#include "zeus/base/log_form.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;
constexpr std::string_view kLog = "log";

// Strengths of settings of the environment: stronger than those of any file.
constexpr std::size_t kKnownVariable = ~std::size_t{0} - 1;
constexpr std::size_t kOwnVariable = ~std::size_t{0};

// Variables that parts of Zeus read themselves, where the option is not given. They are of the
// environment, so they are stronger than files.
struct KnownVariable {
  std::string_view verb;  // The verb's path begins with it.
  std::string_view option;
  const char* variable;
};
constexpr std::array<KnownVariable, 5> kKnownVariables = {{
    {"", "server", "ZEUS_SERVER"},
    {"", "ca-file", "ZEUS_CA_FILE"},
    {"", "token-file", "ZEUS_TOKEN"},
    {"", "socket", "ZEUSD_SOCK_PATH"},
    {"sim", "name", "ZEUS_SIM_NODE"},
}};

bool BelongsTo(const std::string& verb, std::string_view above) {
  return above.empty() || verb == above || verb.starts_with(std::string(above) + " ");
}

std::string Place(const std::filesystem::path& file, const toml::node& node) {
  return fmt::format("{}:{}", Printable(file.string()), node.source().begin.line);
}

Error Mistake(const std::string& place, const std::string& message) {
  return InvalidArgument(fmt::format("{}: {}", place, message));
}

// "sim start" of "zeus sim start".
std::string Below(const VerbDescription& verb) {
  const std::size_t blank = verb.path.find(' ');
  return blank == std::string::npos ? "" : verb.path.substr(blank + 1);
}

// Options that a file may set: those with a long name, but not --help and --version.
std::vector<std::string> Keys(const OptionDescription& option) {
  std::vector<std::string> keys;
  if (option.positional) return keys;
  for (const std::string& name : option.names)
    if (name.starts_with("--") && name != "--help" && name != "--version")
      keys.push_back(name.substr(2));
  return keys;
}

const OptionDescription* FindOption(const VerbDescription& verb, const std::string& key) {
  for (const OptionDescription& option : verb.options)
    if (std::ranges::count(Keys(option), key) > 0) return &option;
  return nullptr;
}

// All options of that name, of the verb and those below it.
void FindAnywhere(const VerbDescription& verb, const std::string& key,
                  std::vector<const OptionDescription*>& found) {
  if (const auto* option = FindOption(verb, key); option != nullptr) found.push_back(option);
  for (const VerbDescription& below : verb.verbs) FindAnywhere(below, key, found);
}

void CollectKeys(const VerbDescription& verb, bool with_below, std::vector<std::string>& keys) {
  for (const OptionDescription& option : verb.options)
    for (std::string& key : Keys(option)) keys.push_back(std::move(key));
  if (with_below)
    for (const VerbDescription& below : verb.verbs) CollectKeys(below, true, keys);
}

std::string Meant(const std::string& word, const std::vector<std::string>& known) {
  const auto closest = ClosestWord(word, known);
  return closest ? fmt::format(": did you mean {}?", *closest) : "";
}

std::optional<std::string> TextOf(const toml::node& node) {
  if (auto text = node.value_exact<std::string>()) return text;
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  if (const auto number = node.value_exact<double>()) return fmt::format("{}", *number);
  if (const auto truth = node.value_exact<bool>()) return *truth ? "true" : "false";
  return std::nullopt;
}

class FileReader {
 public:
  FileReader(const std::filesystem::path& file, const VerbDescription& program, bool checked,
             std::vector<ConfiguredValue>& settings)
      : file_(file), program_(program), checked_(checked), settings_(settings) {}

  // Keys of a table before its sub-tables, so that those of deeper verbs are stronger.
  Status Read(const toml::table& table, const VerbDescription& verb) {
    for (const auto& [key, node] : table)
      if (!node.is_table()) ZEUS_RETURN_IF_ERROR(ReadKey(std::string(key.str()), node, verb));
    for (const auto& [key, node] : table) {
      if (!node.is_table()) continue;
      const std::string name(key.str());
      if (&verb == &program_ && name == kLog) {
        ZEUS_RETURN_IF_ERROR(ReadLog(*node.as_table()));
        continue;
      }
      const auto below = std::ranges::find(verb.verbs, name, &VerbDescription::name);
      if (below != verb.verbs.end())
        ZEUS_RETURN_IF_ERROR(Read(*node.as_table(), *below));
      else if (!checked_)
        return UnknownVerb(name, node, verb);
    }
    return Ok();
  }

 private:
  Status UnknownVerb(const std::string& name, const toml::node& node,
                     const VerbDescription& verb) const {
    std::vector<std::string> known;
    for (const VerbDescription& below : verb.verbs) known.push_back(below.name());
    if (&verb == &program_) known.emplace_back(kLog);
    return Mistake(Place(file_, node),
                   fmt::format("{} has no verb {}{}", verb.path, Quote(name), Meant(name, known)));
  }

  Status ReadKey(const std::string& key, const toml::node& node, const VerbDescription& verb) {
    const bool everywhere = &verb == &program_;
    std::vector<const OptionDescription*> options;
    if (everywhere)
      FindAnywhere(verb, key, options);
    else if (const auto* const option = FindOption(verb, key); option != nullptr)
      options.push_back(option);
    if (options.empty() && checked_) return Ok();
    if (options.empty()) {
      std::vector<std::string> known;
      CollectKeys(verb, everywhere, known);
      const std::string who = everywhere ? "no verb of zeus has the" : verb.path + " has no";
      return Mistake(Place(file_, node),
                     fmt::format("{} option --{}{}", who, Printable(key), Meant(key, known)));
    }
    // A key for all verbs must be right for one of them.
    auto values = Values(key, node, *options.front());
    for (std::size_t i = 1; i < options.size() && !values.ok(); ++i)
      values = Values(key, node, *options[i]);
    if (!values.ok()) return checked_ && everywhere ? Ok() : Status(values.error());
    Add({.verb = Below(verb),
         .option = key,
         .values = std::move(values).value(),
         .truth = node.is_boolean(),
         .origin = Place(file_, node)});
    return Ok();
  }

  Result<std::vector<std::string>> Values(const std::string& key, const toml::node& node,
                                          const OptionDescription& option) const {
    std::vector<std::string> values;
    if (const toml::array* const list = node.as_array(); list != nullptr) {
      if (!option.list)
        return Mistake(Place(file_, node), fmt::format("{} takes one value, not a list", key));
      for (const toml::node& one : *list)
        if (const auto text = TextOf(one)) values.push_back(*text);
      if (values.size() != list->size() || values.empty())
        return Mistake(Place(file_, node), fmt::format("{} must be a list of values", key));
      return values;
    }
    const auto text = TextOf(node);
    const bool truth = node.is_boolean();
    if (!text || (truth && !option.value.empty()))
      return Mistake(Place(file_, node), fmt::format("{} must be a number or a text", key));
    if (!truth && option.value.empty() && !node.is_string())
      return Mistake(Place(file_, node), fmt::format("{} must be true or false", key));
    values.push_back(*text);
    return values;
  }

  Status ReadLog(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const std::vector<std::string> levels = {"debug", "info", "warning", "error", "off"};
      const std::vector<std::string> forms = {"text", "json"};
      if (name != "level" && name != "format")
        return Mistake(Place(file_, node),
                       fmt::format("the log has no {}: it has level and format", Quote(name)));
      const auto& words = name == "level" ? levels : forms;
      const auto text = node.value_exact<std::string>();
      if (!text || std::ranges::count(words, *text) == 0)
        return Mistake(Place(file_, node),
                       fmt::format("{} must be one of {}", name, fmt::join(words, ", ")));
      Add({.verb = std::string(kLog),
           .option = name,
           .values = {*text},
           .origin = Place(file_, node)});
    }
    return Ok();
  }

  void Add(ConfiguredValue setting) {
    setting.strength = settings_.size();
    settings_.push_back(std::move(setting));
  }

  const std::filesystem::path& file_;
  const VerbDescription& program_;
  bool checked_;
  std::vector<ConfiguredValue>& settings_;
};

Result<toml::table> ParseFile(const std::filesystem::path& file) {
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestFile));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return Mistake(fmt::format("{}:{}", Printable(file.string()), error.source().begin.line),
                   Printable(error.description()));
  }
}

}  // namespace

ConfigurationPlaces UserConfiguration(const Environment& environment) {
  ConfigurationPlaces places{.files = {}, .environment = environment};
  if (const auto chosen = environment("ZEUS_CONFIG")) {
    if (!chosen->empty()) places.files.emplace_back(*chosen);
    return places;
  }
  places.files.emplace_back("/etc/zeus/zeus.toml");
  if (const auto folder = UserFolder(environment, "zeus.toml")) places.files.push_back(*folder);
  return places;
}

std::string VariableOf(const std::string& verb, const std::string& option) {
  std::string name = "ZEUS_" + verb + "_" + option;
  for (char& c : name) {
    c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (c == ' ' || c == '-') c = '_';
  }
  return name;
}

Result<Configuration> Configuration::Read(const ConfigurationPlaces& places,
                                          const std::function<VerbDescription()>& describe) {
  Configuration configuration(places.environment);
  std::optional<VerbDescription> program;
  for (const std::filesystem::path& file : places.files) {
    std::error_code error;
    // A home that this user may not enter, as with sudo -u, is as good as none.
    if (!std::filesystem::exists(std::filesystem::status(file, error)) || error) continue;
    ZEUS_TRY(const toml::table table, ParseFile(file));
    if (!program) program = describe();
    ZEUS_RETURN_IF_ERROR(
        FileReader(file, *program, places.checked, configuration.settings_).Read(table, *program));
  }
  return configuration;
}

const ConfiguredValue* Configuration::InFiles(const std::string& verb,
                                              const std::string& option) const {
  const ConfiguredValue* found = nullptr;
  for (const ConfiguredValue& setting : settings_)
    if (setting.option == option &&
        (setting.verb == verb || (setting.verb.empty() && verb != kLog)))
      found = &setting;
  return found;
}

std::vector<ConfiguredValue> Configuration::FindAll(const OptionKey& option) const {
  std::vector<ConfiguredValue> found;
  const auto concerns = [&option](const ConfiguredValue& value) {
    if (std::ranges::count(option.names, value.option) == 0) return false;
    if (value.verb == option.verb) return true;
    return value.verb.empty() && option.verb != kLog && value.truth == option.flag;
  };
  std::ranges::copy_if(settings_, std::back_inserter(found), concerns);
  for (const std::string& name : option.names) AddOfEnvironment(option.verb, name, found);
  return found;
}

void Configuration::AddOfEnvironment(const std::string& verb, const std::string& name,
                                     std::vector<ConfiguredValue>& found) const {
  const auto add = [&](const std::string& variable, bool readable, std::size_t strength) {
    const auto text = environment_(variable);
    if (!text || text->empty()) return;
    const bool secret = !readable && name == "token-file";  // ZEUS_TOKEN is the token itself.
    found.push_back({.verb = verb,
                     .option = name,
                     .values = {secret ? "(a token)" : *text},
                     .origin = "environment " + variable,
                     .readable = readable,
                     .strength = strength});
  };
  for (const KnownVariable& known : kKnownVariables)
    if (known.option == name && BelongsTo(verb, known.verb))
      add(known.variable, false, kKnownVariable);
  add(VariableOf(verb, name), true, kOwnVariable);
}

std::optional<ConfiguredValue> Configuration::Find(const OptionKey& option) const {
  auto all = FindAll(option);
  if (all.empty() || !all.back().readable) return std::nullopt;
  return std::move(all.back());
}

std::optional<std::string> RivalOf(const std::string& option) {
  if (option == "server") return "database";
  if (option == "database") return "server";
  return std::nullopt;
}

bool Configuration::HasStrongerRival(const OptionKey& option, const ConfiguredValue& value) const {
  const auto rival = RivalOf(value.option);
  if (!rival) return false;
  const auto others = FindAll({.verb = option.verb, .names = {*rival}});
  return !others.empty() && others.back().strength >= value.strength;
}

void Configuration::SetUpLog() const {
  constexpr std::array<std::pair<std::string_view, log::Level>, 5> kLevels = {
      {{"debug", log::Level::kDebug},
       {"info", log::Level::kInfo},
       {"warning", log::Level::kWarning},
       {"error", log::Level::kError},
       {"off", log::Level::kOff}}};
  const auto is_set = [this](const char* variable) {
    return !environment_(variable).value_or("").empty();
  };
  if (const ConfiguredValue* const level = InFiles(std::string(kLog), "level");
      level != nullptr && !is_set("ZEUS_LOG_LEVEL"))
    for (const auto& [name, value] : kLevels)
      if (level->values.front() == name) log::SetLevel(value);
  if (const ConfiguredValue* const form = InFiles(std::string(kLog), "format");
      form != nullptr && !is_set("ZEUS_LOG_FORMAT"))
    log::SetForm(form->values.front() == "json" ? log::Form::kJson : log::Form::kText);
}

}  // namespace zeus::cli
