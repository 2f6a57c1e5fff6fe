// The TOML form of a budget. The only file of this layer that knows toml++.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/text.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/budget/configuration.h"

namespace zeus::budget {
namespace {

constexpr double kMostWatts = 1e10;
constexpr std::size_t kLargestFile = std::size_t{1} << 20;

// Reads the keys of a table and refuses those that were not read. The first mistake stays.
class BudgetTable {
 public:
  BudgetTable(const toml::table& table, std::string what, std::string source)
      : table_(table), what_(std::move(what)), source_(std::move(source)) {}

  void Number(const char* key, double lowest, double highest, double& target) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const auto number = node->is_number() ? node->value<double>() : std::nullopt;
    if (!number || !(*number >= lowest && *number <= highest))
      return Fail(*node,
                  fmt::format("{} must be a number from {:g} to {:g}", key, lowest, highest));
    target = *number;
  }
  void Power(const char* key, Watts& target) {
    double watts = target.value();
    Number(key, 0, kMostWatts, watts);
    target = Watts(watts);
  }
  void Power(const char* key, std::optional<Watts>& target) {
    if (Find(key) != nullptr) Power(key, target.emplace());
  }
  void Duration(const char* key, double lowest, double highest, Seconds& target) {
    double seconds = target.count();
    Number(key, lowest, highest, seconds);
    target = Seconds(seconds);
  }
  void Text(const char* key, std::string& target) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    if (!node->is_string()) return Fail(*node, fmt::format("{} must be a text", key));
    target = *node->value<std::string>();
  }
  void Texts(const char* key, std::vector<std::string>& target) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr || !list->is_homogeneous(toml::node_type::string))
      return Fail(*node, fmt::format("{} must be a list of texts", key));
    for (const toml::node& one : *list) target.push_back(*one.value<std::string>());
  }
  void Numbers(const char* key, double lowest, double highest, std::vector<double>& target) {
    const toml::node* node = Find(key);
    if (node == nullptr) return;
    const toml::array* list = node->as_array();
    if (list == nullptr) return Fail(*node, fmt::format("{} must be a list of numbers", key));
    for (const toml::node& one : *list) {
      const auto number = one.is_number() ? one.value<double>() : std::nullopt;
      if (!number || !(*number >= lowest && *number <= highest))
        return Fail(*node,
                    fmt::format("{} must be numbers from {:g} to {:g}", key, lowest, highest));
      target.push_back(*number);
    }
  }
  void Moment(const char* key, WallTime& target) {
    const toml::node* node = Find(key);
    if (node == nullptr) return Fail(table_, fmt::format("{} needs {}", what_, key));
    std::string text;
    if (const auto* date = node->as_date_time()) {
      std::ostringstream out;
      out << date->get();
      text = out.str();
    } else if (node->is_string()) {
      text = *node->value<std::string>();
    }
    const auto time = ParseWallTime(text);
    if (!time.ok()) return Fail(*node, fmt::format("{}: {}", key, time.error().message));
    target = time.value();
  }
  const toml::table* Table(const char* key) {
    const toml::node* node = Find(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table()) Fail(*node, fmt::format("{} must be a table", key));
    return node->as_table();
  }
  std::vector<const toml::table*> Tables(const char* key) {
    std::vector<const toml::table*> tables;
    const toml::node* node = Find(key);
    if (node == nullptr) return tables;
    const toml::array* list = node->as_array();
    if (list == nullptr) {
      Fail(*node, fmt::format("{0} must be tables: write [[{0}]]", key));
      return tables;
    }
    for (const toml::node& one : *list)
      if (const toml::table* table = one.as_table()) tables.push_back(table);
    return tables;
  }
  void Fail(const toml::node& node, const std::string& why) {
    if (!error_)
      error_ = InvalidArgument(fmt::format("{}:{}: {}", source_, node.source().begin.line, why));
  }
  void Fail(const std::string& why) { Fail(table_, why); }
  bool Has(const char* key) const { return table_.get(key) != nullptr; }

  Status Finish() {
    if (error_) return *error_;
    for (const auto& [key, value] : table_) {
      const std::string name(key.str());
      if (known_.contains(name)) continue;
      const std::vector<std::string> known(known_.begin(), known_.end());
      const auto meant = ClosestWord(name, known);
      Fail(value, fmt::format("{} is no key of {}: {}", Quote(name), what_,
                              meant ? fmt::format("did you mean {}?", *meant)
                                    : fmt::format("it may have {}", fmt::join(known, ", "))));
      return *error_;
    }
    return Ok();
  }

 private:
  const toml::node* Find(const char* key) {
    known_.insert(key);
    return table_.get(key);
  }

  const toml::table& table_;
  std::string what_;
  std::string source_;
  std::set<std::string> known_{};
  std::optional<Error> error_{};
};

// follow = "carbon", between = [0.7, 1.0]
void ReadFollow(BudgetTable& reader, BudgetConfiguration& budget) {
  std::string follow;
  std::vector<double> between;
  reader.Text("follow", follow);
  reader.Numbers("between", 0.01, 1, between);
  if (follow.empty() && between.empty()) return;
  if (follow != "carbon" && follow != "price")
    return reader.Fail(fmt::format(
        "follow is {}: write \"carbon\" or \"price\", of which zeus serve --carbon or --price is "
        "the source",
        Quote(follow)));
  if (between.size() != 2 || between[0] > between[1])
    return reader.Fail(
        "between must be the shares of the budget at the worst and at the best hour: [0.7, 1.0]");
  budget.follow =
      FollowSpec{.price = follow == "price", .lowest = between[0], .highest = between[1]};
}

Status ReadBudget(const toml::table& table, const std::string& source,
                  BudgetConfiguration& budget) {
  BudgetTable reader(table, "[budget]", source);
  std::string mode = "limits";
  std::string objective = "mean";
  reader.Power("watts", budget.watts);
  reader.Text("mode", mode);
  reader.Number("reserve", 0, 0.9, budget.reserve);
  reader.Duration("period_seconds", 1, 3600, budget.period);
  reader.Duration("valid_seconds", 10, 600, budget.valid);
  reader.Duration("report_seconds", 0.5, 60, budget.next_report);
  reader.Power("ramp_watts_per_second", budget.ramp);
  reader.Power("fallback_watts", budget.fallback);
  reader.Power("start_watts", budget.start);
  reader.Text("objective", objective);
  reader.Number("eta", 0, 1, budget.eta);
  ReadFollow(reader, budget);
  if (mode == "drawn")
    budget.mode = water_filling::Resource::kDrawn;
  else if (mode != "limits")
    reader.Fail(
        fmt::format("mode is {}: write \"limits\", which is safe whatever jobs do, or "
                    "\"drawn\"",
                    Quote(mode)));
  if (objective == "worst")
    budget.objective = water_filling::Objective::kWorst;
  else if (objective == "cost")
    budget.objective = water_filling::Objective::kCost;
  else if (objective != "mean")
    reader.Fail(
        fmt::format("objective is {}: write \"mean\", \"worst\" or \"cost\"", Quote(objective)));
  if (!reader.Has("watts")) reader.Fail("[budget] needs watts: the power that all nodes may draw");
  if (budget.ramp && *budget.ramp <= Watts(0))
    reader.Fail("ramp_watts_per_second must be more than 0");
  if (3 * budget.next_report > budget.valid)
    reader.Fail("valid_seconds must be three times report_seconds or more: reports get lost");
  return reader.Finish();
}

Status ReadDomain(const toml::table& table, const std::string& source,
                  BudgetConfiguration& budget) {
  DomainSpec domain;
  BudgetTable reader(table, "[[domain]]", source);
  reader.Text("name", domain.name);
  reader.Text("parent", domain.parent);
  reader.Power("watts", domain.watts);
  reader.Texts("nodes", domain.nodes);
  reader.Power("node_watts", domain.node_watts);
  if (domain.name.empty()) reader.Fail("[[domain]] needs a name");
  if (domain.name == kRootDomain)
    reader.Fail(fmt::format("{} is the name of all domains together: call this one otherwise",
                            Quote(domain.name)));
  if (!reader.Has("watts")) reader.Fail("[[domain]] needs watts");
  bool has_parent = domain.parent.empty() || domain.parent == kRootDomain;
  for (const DomainSpec& other : budget.domains) {
    if (other.name == domain.name)
      reader.Fail(fmt::format("domain {} is there twice", Quote(domain.name)));
    has_parent = has_parent || other.name == domain.parent;
  }
  if (!has_parent)
    reader.Fail(fmt::format("parent {} is no domain above this one", Quote(domain.parent)));
  for (const std::string& pattern : domain.nodes)
    if (const auto names = ExpandNodes(pattern); !names.ok()) reader.Fail(names.error().message);
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  budget.domains.push_back(std::move(domain));
  return Ok();
}

Status ReadClass(const toml::table& table, const std::string& source, BudgetConfiguration& budget) {
  JobClass job_class;
  double slowdown = 0;
  BudgetTable reader(table, "[[class]]", source);
  reader.Text("name", job_class.name);
  reader.Number("weight", 1e-6, 1e6, job_class.weight);
  reader.Number("max_slowdown", 1, 1000, slowdown);
  if (const toml::table* match = reader.Table("match")) {
    BudgetTable keys(*match, "match", source);
    keys.Text("partition", job_class.partition);
    keys.Text("job", job_class.job);
    ZEUS_RETURN_IF_ERROR(keys.Finish());
  }
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  if (slowdown > 0) job_class.max_slowdown = slowdown;
  budget.classes.push_back(std::move(job_class));
  return Ok();
}

Status ReadSchedule(const toml::table& table, const std::string& source,
                    BudgetConfiguration& budget) {
  Target target;
  BudgetTable reader(table, "[[schedule]]", source);
  reader.Moment("start", target.start);
  reader.Moment("end", target.end);
  reader.Power("watts", target.watts);
  reader.Text("domain", target.domain);
  reader.Text("reason", target.reason);
  if (target.end <= target.start) reader.Fail("end must be after start");
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  target.id = fmt::format("file-{}", budget.schedule.size() + 1);
  budget.schedule.push_back(std::move(target));
  return Ok();
}

// Watts that are committed before any node reports must fit: a budget would begin exceeded.
Status CheckReservations(const BudgetConfiguration& budget, const std::string& source) {
  std::map<std::string, Watts> reserved;
  for (const DomainSpec& domain : budget.domains) {
    std::size_t nodes = 0;
    for (const std::string& pattern : domain.nodes) {
      ZEUS_TRY(const auto names, ExpandNodes(pattern));
      nodes += names.size();
    }
    reserved[domain.name] += static_cast<double>(nodes) * domain.node_watts;
  }
  // Children stand behind their parents.
  for (auto domain = budget.domains.rbegin(); domain != budget.domains.rend(); ++domain) {
    const bool in_root = domain->parent.empty() || domain->parent == kRootDomain;
    reserved[in_root ? kRootDomain : domain->parent] += reserved[domain->name];
  }
  const auto check = [&](const std::string& name, Watts watts) -> Status {
    const Watts most = watts * (1 - budget.reserve);
    if (reserved[name] <= most) return Ok();
    return InvalidArgument(fmt::format(
        "{}: node_watts reserve {} for nodes of {} that have not reported, but of its {} only {} "
        "may be granted: reserve less, or raise its watts",
        source, PowerText(reserved[name]), Quote(name), PowerText(watts), PowerText(most)));
  };
  for (const DomainSpec& domain : budget.domains)
    ZEUS_RETURN_IF_ERROR(check(domain.name, domain.watts));
  return check(kRootDomain, budget.watts);
}

}  // namespace

Result<BudgetConfiguration> ParseBudgetConfiguration(std::string_view toml,
                                                     const std::string& source) {
  const std::string name = Printable(source);
  toml::table root;
  try {
    root = toml::parse(toml);
  } catch (const toml::parse_error& error) {
    return InvalidArgument(
        fmt::format("{}:{}: {}", name, error.source().begin.line, Printable(error.description())));
  }
  BudgetConfiguration budget;
  BudgetTable reader(root, "a budget", name);
  const toml::table* head = reader.Table("budget");
  const auto domains = reader.Tables("domain");
  const auto classes = reader.Tables("class");
  const auto schedule = reader.Tables("schedule");
  if (head == nullptr) reader.Fail("there is no [budget]: it says how many watts there are");
  ZEUS_RETURN_IF_ERROR(reader.Finish());
  if (head != nullptr) ZEUS_RETURN_IF_ERROR(ReadBudget(*head, name, budget));
  for (const toml::table* one : domains) ZEUS_RETURN_IF_ERROR(ReadDomain(*one, name, budget));
  for (const toml::table* one : classes) ZEUS_RETURN_IF_ERROR(ReadClass(*one, name, budget));
  for (const toml::table* one : schedule) ZEUS_RETURN_IF_ERROR(ReadSchedule(*one, name, budget));
  ZEUS_RETURN_IF_ERROR(CheckReservations(budget, name));
  return budget;
}

Result<BudgetConfiguration> ReadBudgetConfiguration(const std::filesystem::path& file) {
  // Opening a pipe would wait for somebody who writes.
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!error && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    return InvalidArgument(Printable(file.string()) +
                           ": a budget is read from a regular file, which this is not");
  ZEUS_TRY(const std::string text, ReadSmallFile(file, kLargestFile));
  return ParseBudgetConfiguration(text, file.string());
}

}  // namespace zeus::budget
