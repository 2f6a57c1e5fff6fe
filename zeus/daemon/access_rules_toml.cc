// The TOML form of the access rules. The only file of this layer that knows toml++.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

#include "zeus/base/text.h"
#include "zeus/daemon/access_rules.h"
#include "zeus/daemon/trusted_file.h"

namespace zeus::daemon {
namespace {

using wire::LeaseKnob;

// Both ends are allowed.
struct Span {
  double lowest;
  double highest;
};

constexpr Span kAnyWatts{1, 1e6};
constexpr Span kAnyHertz{1e6, 1e12};
constexpr Span kAnyRate{0.01, 1e4};
constexpr std::int64_t kMostLeases = 4096;
constexpr double kYear = 366.0 * 24 * 3600;

std::optional<gid_t> FindGroup(const std::string& name) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  struct group entry {};
  struct group* found = nullptr;
  for (std::vector<char> buffer(4096); buffer.size() <= kMost; buffer.resize(4 * buffer.size())) {
    const int reason = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
    if (reason == ERANGE) continue;
    if (found != nullptr) return found->gr_gid;
    break;
  }
  return std::nullopt;
}

// Reads a parsed document. Every error has the line that it is about.
class Document {
 public:
  explicit Document(const std::string& source) : source_(Printable(source)) {}

  Result<Configuration> Read(const toml::table& root) const;

 private:
  // The knobs that bounds and rates are written for, and where they may stand.
  enum class In { kBounds, kRates };

  Error At(const toml::source_region& region, std::string_view why) const {
    return InvalidArgument(fmt::format("{}:{}: {}", source_, region.begin.line, why));
  }
  Error Wrong(const toml::node& node, std::string_view key, std::string_view why) const {
    return At(node.source(), fmt::format("{} {}", key, why));
  }

  Status OnlyKnown(const toml::table& table, std::string_view what,
                   std::vector<std::string> known) const;

  Result<std::string> Text(const toml::node& node, std::string_view key) const;
  Result<bool> Boolean(const toml::node& node, std::string_view key) const;
  Result<double> Number(const toml::node& node, std::string_view key, Span span) const;
  Result<std::int64_t> Whole(const toml::node& node, std::string_view key,
                             std::int64_t highest) const;
  Result<const toml::table*> Table(const toml::node& node, std::string_view key) const;
  // A list that is empty would mean "any", and a person who wrote it meant "none".
  Result<const toml::array*> List(const toml::node& node, std::string_view key) const;
  Result<std::vector<std::string>> Texts(const toml::node& node, std::string_view key) const;
  Result<Seconds> ReadSeconds(const toml::node& node, std::string_view key, Span span) const;
  template <class Enum>
  Result<Enum> OneOf(const toml::node& node, std::string_view key,
                     std::initializer_list<std::pair<std::string_view, Enum>> choices) const;

  Status ReadScopes(const toml::node& node, ScopeSet& scopes) const;
  Status ReadDevices(const toml::node& node, Grant& grant) const;
  Result<KnobBounds> ReadBoundsOf(LeaseKnob knob, const toml::node& node,
                                  std::string_view key) const;
  Status ReadBounds(const toml::table& table, std::map<LeaseKnob, KnobBounds>& bounds) const;
  Status ReadRates(const toml::node& node, std::map<LeaseKnob, double>& rates) const;
  // Everything that rules and defaults have in common, except the number of leases.
  Status ReadGrant(const toml::table& table, Grant& grant) const;
  Result<std::vector<gid_t>> ReadGroups(const toml::node& node) const;
  Result<RuleMatch> ReadMatch(const toml::node& node) const;
  Result<AccessRule> ReadRule(const toml::table& table, std::size_t number) const;
  Status ReadRules(const toml::node& node, std::vector<AccessRule>& rules) const;
  Status ReadDefaults(const toml::node& node, Grant& defaults) const;
  Status ReadGlobalBounds(const toml::node& node, Configuration& configuration) const;
  Status ReadPolicies(const toml::table& root, Configuration& configuration) const;
  Status ReadSlurm(const toml::node& node, Configuration& configuration) const;

  const std::string source_;
  mutable std::vector<std::string> unknown_groups_{};  // Sentences for Configuration.
};

constexpr std::array kBoundedKnobs = {
    std::pair{std::string_view("gpu_power_limit"), LeaseKnob::kGpuPowerLimit},
    std::pair{std::string_view("cpu_power_limit"), LeaseKnob::kCpuPowerLimit},
    std::pair{std::string_view("graphics_clock"), LeaseKnob::kGraphicsClock},
    std::pair{std::string_view("memory_clock"), LeaseKnob::kMemoryClock}};

std::vector<std::string> WithKnobs(std::vector<std::string> keys) {
  for (const auto& [key, knob] : kBoundedKnobs) keys.emplace_back(key);
  return keys;
}

Status Document::OnlyKnown(const toml::table& table, std::string_view what,
                           std::vector<std::string> known) const {
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    if (std::ranges::find(known, name) != known.end()) continue;
    const auto meant = ClosestWord(name, known);
    const std::string fix = meant ? fmt::format("did you mean {}?", *meant)
                                  : fmt::format("{} may have {}", what, fmt::join(known, ", "));
    return At(key.source(), fmt::format("{} is no key of {}: {}", Quote(name), what, fix));
  }
  return Ok();
}

Result<std::string> Document::Text(const toml::node& node, std::string_view key) const {
  const toml::value<std::string>* text = node.as_string();
  if (text == nullptr) return Wrong(node, key, "must be a text in quotation marks");
  if (text->get().empty()) return Wrong(node, key, "is empty: leave it out");
  if (text->get().find('\0') != std::string::npos) return Wrong(node, key, "holds a zero byte");
  return text->get();
}

Result<bool> Document::Boolean(const toml::node& node, std::string_view key) const {
  if (const auto* value = node.as_boolean()) return value->get();
  return Wrong(node, key, "must be true or false");
}

Result<double> Document::Number(const toml::node& node, std::string_view key, Span span) const {
  const std::optional<double> number = node.is_number() ? node.value<double>() : std::nullopt;
  if (!number) return Wrong(node, key, "must be a number");
  if (!(*number >= span.lowest && *number <= span.highest))
    return Wrong(node, key,
                 fmt::format("is {}: write {} to {}", *number, span.lowest, span.highest));
  return *number;
}

Result<std::int64_t> Document::Whole(const toml::node& node, std::string_view key,
                                     std::int64_t highest) const {
  const auto* number = node.as_integer();
  if (number == nullptr || number->get() < 0 || number->get() > highest)
    return Wrong(node, key, fmt::format("must be a whole number from 0 to {}", highest));
  return number->get();
}

Result<const toml::table*> Document::Table(const toml::node& node, std::string_view key) const {
  if (const toml::table* table = node.as_table()) return table;
  return Wrong(node, key, "must be a table: write { … }");
}

Result<const toml::array*> Document::List(const toml::node& node, std::string_view key) const {
  const toml::array* list = node.as_array();
  if (list == nullptr) return Wrong(node, key, "must be a list: write [ … ]");
  if (list->empty()) return Wrong(node, key, "is an empty list: leave it out, or fill it");
  return list;
}

Result<std::vector<std::string>> Document::Texts(const toml::node& node,
                                                 std::string_view key) const {
  ZEUS_TRY(const toml::array* list, List(node, key));
  std::vector<std::string> texts;
  for (const toml::node& element : *list) {
    ZEUS_TRY(texts.emplace_back(), Text(element, key));
  }
  return texts;
}

Result<Seconds> Document::ReadSeconds(const toml::node& node, std::string_view key,
                                      Span span) const {
  ZEUS_TRY(const double seconds, Number(node, key, span));
  return Seconds(seconds);
}

template <class Enum>
Result<Enum> Document::OneOf(
    const toml::node& node, std::string_view key,
    std::initializer_list<std::pair<std::string_view, Enum>> choices) const {
  ZEUS_TRY(const std::string text, Text(node, key));
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) {
    if (name == text) return value;
    names.push_back(Quote(name));
  }
  return Wrong(node, key, fmt::format("is {}: write {}", Quote(text), fmt::join(names, " or ")));
}

Status Document::ReadScopes(const toml::node& node, ScopeSet& scopes) const {
  const toml::array* list = node.as_array();
  if (list == nullptr) return Wrong(node, "scopes", "must be a list like [\"gpu-read\"]");
  scopes = {};  // An empty list is none.
  for (const toml::node& element : *list) {
    ZEUS_TRY(const std::string name, Text(element, "scopes"));
    const auto scope = ParseScope(name);
    if (!scope.ok()) return Wrong(element, "scopes:", scope.error().message);
    scopes.Add(scope.value());
  }
  return Ok();
}

Status Document::ReadDevices(const toml::node& node, Grant& grant) const {
  if (node.is_string()) {
    enum class Group { kJob, kAll };
    ZEUS_TRY(const Group group,
             OneOf<Group>(node, "devices", {{"job", Group::kJob}, {"all", Group::kAll}}));
    grant.devices_of_jobs = group == Group::kJob;
    grant.all_devices = group == Group::kAll;
    return Ok();
  }
  ZEUS_TRY(const std::vector<std::string> names, Texts(node, "devices"));
  for (const std::string& name : names) {
    // An index would be another GPU after the next start.
    const bool index = std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (index || name == "all" || name == "job")
      return Wrong(
          node, "devices",
          fmt::format("has {}: a list names UUIDs or PCI addresses, as zeus env shows them",
                      Quote(name)));
    grant.devices.insert(name);
  }
  return Ok();
}

Result<KnobBounds> Document::ReadBoundsOf(LeaseKnob knob, const toml::node& node,
                                          std::string_view key) const {
  ZEUS_TRY(const toml::table* table, Table(node, key));
  KnobBounds bounds;
  if (wire::IsClock(knob)) {
    ZEUS_RETURN_IF_ERROR(OnlyKnown(*table, key, {"min_hertz"}));
  } else {
    ZEUS_RETURN_IF_ERROR(OnlyKnown(*table, key, {"min_watts", "max_share"}));
  }
  if (const toml::node* value = table->get("min_hertz")) {
    ZEUS_TRY(const double hertz, Number(*value, "min_hertz", kAnyHertz));
    bounds.min_hertz = Hertz(hertz);
  }
  if (const toml::node* value = table->get("min_watts")) {
    ZEUS_TRY(const double watts, Number(*value, "min_watts", kAnyWatts));
    bounds.min_watts = Watts(watts);
  }
  if (const toml::node* value = table->get("max_share")) {
    ZEUS_TRY(bounds.max_share, Number(*value, "max_share", {0.01, 1.0}));
  }
  return bounds;
}

Status Document::ReadBounds(const toml::table& table,
                            std::map<LeaseKnob, KnobBounds>& bounds) const {
  for (const auto& [key, knob] : kBoundedKnobs) {
    const toml::node* node = table.get(key);
    if (node == nullptr) continue;
    ZEUS_TRY(bounds[knob], ReadBoundsOf(knob, *node, key));
  }
  return Ok();
}

Status Document::ReadRates(const toml::node& node, std::map<LeaseKnob, double>& rates) const {
  ZEUS_TRY(const toml::table* table, Table(node, "sets_per_second"));
  ZEUS_RETURN_IF_ERROR(OnlyKnown(*table, "sets_per_second", WithKnobs({"persistence"})));
  for (const auto& [key, value] : *table) {
    const auto found =
        std::ranges::find(kBoundedKnobs, key.str(), [](const auto& knob) { return knob.first; });
    const LeaseKnob knob = found == kBoundedKnobs.end() ? LeaseKnob::kPersistence : found->second;
    ZEUS_TRY(rates[knob], Number(value, key.str(), kAnyRate));
  }
  return Ok();
}

Status Document::ReadGrant(const toml::table& table, Grant& grant) const {
  if (const toml::node* node = table.get("scopes"))
    ZEUS_RETURN_IF_ERROR(ReadScopes(*node, grant.scopes));
  if (const toml::node* node = table.get("devices")) {
    ZEUS_RETURN_IF_ERROR(ReadDevices(*node, grant));
  } else {
    grant.all_devices = grant.scopes.controls();
  }
  if (const toml::node* node = table.get("sets_per_second"))
    ZEUS_RETURN_IF_ERROR(ReadRates(*node, grant.sets_per_second));
  return ReadBounds(table, grant.bounds);
}

Result<std::vector<gid_t>> Document::ReadGroups(const toml::node& node) const {
  ZEUS_TRY(const toml::array* list, List(node, "groups"));
  std::vector<gid_t> groups;
  for (const toml::node& element : *list) {
    if (element.is_integer()) {
      ZEUS_TRY(const std::int64_t number, Whole(element, "groups", 0xfffffffe));
      groups.push_back(static_cast<gid_t>(number));
      continue;
    }
    ZEUS_TRY(const std::string name, Text(element, "groups"));
    const auto group = FindGroup(name);
    groups.push_back(group.value_or(kUnknownGroup));
    if (!group)
      unknown_groups_.push_back(
          Wrong(element, "groups:",
                fmt::format("there is no group {} on this machine: create it, or write its number",
                            Quote(name)))
              .message);
  }
  return groups;
}

Result<RuleMatch> Document::ReadMatch(const toml::node& node) const {
  ZEUS_TRY(const toml::table* table, Table(node, "match"));
  ZEUS_RETURN_IF_ERROR(OnlyKnown(
      *table, "match", {"uids", "groups", "contained", "cgroup", "namespace", "subjects"}));
  RuleMatch match;
  if (const toml::node* uids = table->get("uids")) {
    ZEUS_TRY(const toml::array* list, List(*uids, "uids"));
    for (const toml::node& element : *list) {
      ZEUS_TRY(const std::int64_t number, Whole(element, "uids", 0xfffffffe));
      match.uids.push_back(static_cast<uid_t>(number));
    }
  }
  if (const toml::node* groups = table->get("groups")) {
    ZEUS_TRY(match.groups, ReadGroups(*groups));
  }
  if (const toml::node* contained = table->get("contained")) {
    ZEUS_TRY(match.contained, Boolean(*contained, "contained"));
  }
  if (const toml::node* cgroup = table->get("cgroup")) {
    ZEUS_TRY(match.cgroup, Text(*cgroup, "cgroup"));
  }
  if (const toml::node* name_space = table->get("namespace")) {
    ZEUS_TRY(match.name_space, Text(*name_space, "namespace"));
  }
  if (const toml::node* subjects = table->get("subjects")) {
    ZEUS_TRY(match.subjects, Texts(*subjects, "subjects"));
  }
  return match;
}

std::vector<std::string> GrantKeys() {
  return WithKnobs({"scopes", "devices", "leases", "sets_per_second"});
}

Result<AccessRule> Document::ReadRule(const toml::table& table, std::size_t number) const {
  auto known = GrantKeys();
  known.insert(known.end(), {"name", "match"});
  ZEUS_RETURN_IF_ERROR(OnlyKnown(table, "a rule", std::move(known)));
  AccessRule rule{.name = fmt::format("rule {}", number)};
  if (const toml::node* name = table.get("name")) {
    ZEUS_TRY(const std::string text, Text(*name, "name"));
    rule.name = Printable(text);
  }
  const toml::node* match = table.get("match");
  if (match == nullptr)
    return At(table.source(),
              fmt::format("rule {} has no match: write match = {{}} if it is for everybody",
                          Quote(rule.name)));
  ZEUS_TRY(rule.match, ReadMatch(*match));
  ZEUS_RETURN_IF_ERROR(ReadGrant(table, rule.grant));
  if (const toml::node* node = table.get("leases")) {
    ZEUS_TRY(const std::int64_t leases, Whole(*node, "leases", kMostLeases));
    rule.leases = static_cast<std::size_t>(leases);
  }
  return rule;
}

Status Document::ReadRules(const toml::node& node, std::vector<AccessRule>& rules) const {
  const toml::array* list = node.as_array();
  if (list == nullptr) return Wrong(node, "rule", "must be written as [[rule]]");
  for (const toml::node& element : *list) {
    const toml::table* table = element.as_table();
    if (table == nullptr) return Wrong(element, "rule", "must be written as [[rule]]");
    ZEUS_TRY(rules.emplace_back(), ReadRule(*table, rules.size() + 1));
  }
  return Ok();
}

Status Document::ReadDefaults(const toml::node& node, Grant& defaults) const {
  ZEUS_TRY(const toml::table* table, Table(node, "defaults"));
  ZEUS_RETURN_IF_ERROR(OnlyKnown(*table, "[defaults]", GrantKeys()));
  if (const toml::node* value = table->get("leases")) {
    ZEUS_TRY(const std::int64_t leases, Whole(*value, "leases", kMostLeases));
    defaults.leases = static_cast<std::size_t>(leases);
  }
  return ReadGrant(*table, defaults);
}

Status Document::ReadGlobalBounds(const toml::node& node, Configuration& configuration) const {
  constexpr std::string_view kPeriod = "cpu_energy_period_seconds";
  ZEUS_TRY(const toml::table* table, Table(node, "bounds"));
  ZEUS_RETURN_IF_ERROR(OnlyKnown(*table, "[bounds]", WithKnobs({std::string(kPeriod)})));
  if (const toml::node* value = table->get(kPeriod)) {
    ZEUS_TRY(configuration.cpu_energy_period, ReadSeconds(*value, kPeriod, {0.001, 3600}));
  }
  return ReadBounds(*table, configuration.bounds);
}

Status Document::ReadSlurm(const toml::node& node, Configuration& configuration) const {
  ZEUS_TRY(const toml::table* table, Table(node, "slurm"));
  ZEUS_RETURN_IF_ERROR(OnlyKnown(*table, "[slurm]", {"gpus"}));
  const toml::node* gpus = table->get("gpus");
  if (gpus == nullptr) return Ok();
  ZEUS_TRY(configuration.slurm_gpus, Texts(*gpus, "gpus"));
  std::vector<std::string> sorted = configuration.slurm_gpus;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return Wrong(*gpus, "gpus",
                 fmt::format("has {} twice: each position is another GPU", Quote(*twice)));
  return Ok();
}

Status Document::ReadPolicies(const toml::table& root, Configuration& configuration) const {
  if (const toml::node* node = root.get("foreign")) {
    ZEUS_TRY(configuration.foreign, OneOf<ForeignPolicy>(*node, "foreign",
                                                         {{"respect", ForeignPolicy::kRespect},
                                                          {"reassert", ForeignPolicy::kReassert}}));
  }
  if (const toml::node* node = root.get("stop_policy")) {
    ZEUS_TRY(configuration.stop_policy,
             OneOf<StopPolicy>(*node, "stop_policy",
                               {{"restore", StopPolicy::kRestore}, {"leave", StopPolicy::kLeave}}));
  }
  if (const toml::node* node = root.get("compat_hold_seconds")) {
    ZEUS_TRY(configuration.compat_hold, ReadSeconds(*node, "compat_hold_seconds", {1, kYear}));
  }
  if (const toml::node* node = root.get("max_token_lifetime_seconds")) {
    ZEUS_TRY(configuration.max_token_lifetime,
             ReadSeconds(*node, "max_token_lifetime_seconds", {1, 100 * kYear}));
  }
  return Ok();
}

Result<Configuration> Document::Read(const toml::table& root) const {
  ZEUS_RETURN_IF_ERROR(OnlyKnown(root, "this file",
                                 {"defaults", "rule", "bounds", "foreign", "stop_policy",
                                  "compat_hold_seconds", "max_token_lifetime_seconds", "slurm"}));
  Configuration configuration = DefaultConfiguration();
  ZEUS_RETURN_IF_ERROR(ReadPolicies(root, configuration));
  if (const toml::node* node = root.get("defaults"))
    ZEUS_RETURN_IF_ERROR(ReadDefaults(*node, configuration.defaults));
  if (const toml::node* node = root.get("rule"))
    ZEUS_RETURN_IF_ERROR(ReadRules(*node, configuration.rules));
  if (const toml::node* node = root.get("bounds"))
    ZEUS_RETURN_IF_ERROR(ReadGlobalBounds(*node, configuration));
  if (const toml::node* node = root.get("slurm"))
    ZEUS_RETURN_IF_ERROR(ReadSlurm(*node, configuration));
  configuration.unknown_groups = unknown_groups_;
  return configuration;
}

}  // namespace

Result<Configuration> ParseConfiguration(std::string_view toml, const std::string& source) {
  if (toml.size() > kTrustedFileLimit)
    return InvalidArgument(
        fmt::format("{}: larger than {} bytes", Printable(source), kTrustedFileLimit));
  toml::table root;
  try {
    root = toml::parse(toml);
  } catch (const toml::parse_error& error) {
    return InvalidArgument(fmt::format("{}:{}: {}", Printable(source), error.source().begin.line,
                                       Printable(error.description())));
  }
  return Document(source).Read(root);
}

}  // namespace zeus::daemon
