#include "apps/zeus/slurm/slurm_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "zeus/base/field_reader.h"
#include "zeus/base/json.h"
#include "zeus/base/quantity_text.h"
#include "zeus/base/terminal_text.h"
#include "zeus/base/text.h"

namespace zeus::cli {
namespace {

constexpr std::size_t kLongestComment = 1024;
constexpr std::size_t kAccountingFields = 9;

std::vector<std::string> SplitAtBars(std::string_view line) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    // The comment is the last field, and may have bars itself.
    if (c == '|' && fields.size() < kAccountingFields)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  return fields;
}

std::optional<double> NumberIn(const std::string& text) {
  const auto number = ParseDouble(text);
  return number.ok() ? std::optional(number.value()) : std::nullopt;
}

double SumOf(const std::vector<NodeShare>& shares) {
  double sum = 0;
  for (const NodeShare& share : shares) sum += share.energy.value();
  return sum;
}

// Errors of nodes are independent: each has its own sensors.
double SigmaOf(const std::vector<NodeShare>& shares) {
  double variance = 0;
  for (const NodeShare& share : shares) variance += share.sigma.value() * share.sigma.value();
  return std::sqrt(variance);
}

double Rounded(double joules) { return std::round(joules * 10) / 10; }

Json ParseComment(std::string_view comment) {
  // Slurm's accounting stores ` for ".
  std::string text(comment);
  std::ranges::replace(text, '`', '"');
  const auto parsed = ParseJson(text);
  return parsed.ok() && parsed.value().is_object() ? parsed.value() : Json::object();
}

// {120.5, 3} of [120.5, 3].
std::optional<NodeShare> ShareIn(const std::string& node, const Json& json, std::size_t first) {
  if (!json.is_array() || json.size() != first + 2) return std::nullopt;
  if (!json[first].is_number() || !json[first + 1].is_number()) return std::nullopt;
  return NodeShare{.node = node,
                   .energy = Joules(json[first].get<double>()),
                   .sigma = Joules(json[first + 1].get<double>())};
}

// How many nodes the shares without a name stand for.
std::size_t OthersIn(const Json& zeus) {
  if (!zeus.is_object() || !zeus.contains("others")) return 0;
  const Json& others = zeus["others"];
  return others.is_array() && !others.empty() && others[0].is_number_unsigned()
             ? others[0].get<std::size_t>()
             : 0;
}

Json ZeusOf(const std::vector<NodeShare>& named, const std::vector<NodeShare>& folded,
            std::size_t others, std::optional<Watts> limit) {
  std::vector<NodeShare> all = named;
  all.insert(all.end(), folded.begin(), folded.end());
  Json nodes = Json::object();
  for (const NodeShare& share : named)
    nodes[share.node] = {Rounded(share.energy.value()), Rounded(share.sigma.value())};
  Json zeus = {{"joules", Rounded(SumOf(all))},
               {"sigma", Rounded(SigmaOf(all))},
               {"nodes", std::move(nodes)}};
  if (limit) zeus["limit_watts"] = limit->value();
  // The sums over other nodes are read and written with each of them: rounding would add up.
  const auto finely = [](double joules) { return std::round(joules * 1000) / 1000; };
  if (others > 0) zeus["others"] = {others, finely(SumOf(folded)), finely(SigmaOf(folded))};
  return zeus;
}

std::string EnergyOf(const AccountedLine& line) {
  return line.energy ? EnergyText(*line.energy) : "-";
}

}  // namespace

Result<std::vector<AccountedLine>> ParseAccounting(std::string_view text) {
  std::vector<AccountedLine> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.empty()) continue;
    const auto fields = SplitAtBars(row);
    if (fields.size() != kAccountingFields)
      return InvalidArgument(fmt::format("sacct printed {} of {} columns: {}", fields.size(),
                                         kAccountingFields, Quote(row)));
    AccountedLine line{.id = fields[0],
                       .name = fields[1],
                       .user = fields[2],
                       .partition = fields[3],
                       .state = fields[4],
                       .nodes = fields[5],
                       .comment = fields[8]};
    if (const auto seconds = NumberIn(fields[6])) line.elapsed = Seconds(*seconds);
    if (const auto joules = NumberIn(fields[7])) line.energy = Joules(*joules);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<NodeShare> SharesOfComment(std::string_view comment) {
  const Json parsed = ParseComment(comment);
  std::vector<NodeShare> shares;
  if (!parsed.contains("zeus") || !parsed["zeus"].is_object()) return shares;
  const Json& zeus = parsed["zeus"];
  if (zeus.contains("nodes") && zeus["nodes"].is_object())
    for (const auto& [node, json] : zeus["nodes"].items())
      if (auto share = ShareIn(node, json, 0)) shares.push_back(*std::move(share));
  if (OthersIn(zeus) > 0)
    if (auto share = ShareIn("", zeus["others"], 1)) shares.push_back(*std::move(share));
  return shares;
}

std::string CommentWith(std::string_view comment, const NodeShare& share,
                        std::optional<Watts> limit) {
  Json document = ParseComment(comment);
  std::size_t others = document.contains("zeus") ? OthersIn(document["zeus"]) : 0;
  std::vector<NodeShare> named;
  std::vector<NodeShare> folded;
  for (NodeShare& known : SharesOfComment(comment)) {
    if (known.node.empty())
      folded.push_back(std::move(known));
    else if (known.node != share.node)
      named.push_back(std::move(known));
  }
  named.push_back(share);
  for (;;) {
    document["zeus"] = ZeusOf(named, folded, others, limit);
    std::string text = JsonText(document);
    if (text.size() <= kLongestComment || named.empty()) return text;
    folded.push_back(std::move(named.front()));
    named.erase(named.begin());
    ++others;
  }
}

Result<NodeShare> ShareOfRecord(const Json& record, const std::string& node) {
  NodeShare share{.node = node};
  double joules = 0;
  std::optional<double> sigma;
  std::optional<double> cpu;
  FieldReader reader("the daemon's record of the job", record);
  reader.Require("energy_joules", joules);
  reader.Read("sigma_joules", sigma);
  ZEUS_RETURN_IF_ERROR(reader.FinishAllowingOthers());
  if (record.contains("cpu") && record["cpu"].is_object()) {
    FieldReader of_cpu("cpu", record["cpu"]);
    of_cpu.Read("energy_joules", cpu);
    ZEUS_RETURN_IF_ERROR(of_cpu.FinishAllowingOthers());
  }
  share.energy = Joules(joules + cpu.value_or(0));
  share.sigma = Joules(sigma.value_or(0));
  return share;
}

std::string ReportText(const std::vector<AccountedLine>& lines,
                       const std::vector<NodeShare>& nodes) {
  using Row = std::vector<std::string>;
  std::string text;
  if (!lines.empty()) {
    const AccountedLine& job = lines.front();
    text += OneLineForTerminal(fmt::format("job {} \"{}\" of {} in {}: {}", job.id, job.name,
                                           job.user, job.partition, job.state)) +
            "\n";
    std::vector<Row> rows{{"", "time", "energy (sacct)", "state"}};
    for (const AccountedLine& line : lines)
      rows.push_back({OneLineForTerminal(line.id),
                      line.elapsed ? fmt::format("{:.0f} s", line.elapsed->count()) : "-",
                      EnergyOf(line), OneLineForTerminal(line.state)});
    text += AlignedRows({Align::kLeft, Align::kRight, Align::kRight, Align::kLeft}, rows);
  }
  if (nodes.empty()) return text + "zeusd has no record of it: see docs/slurm.md\n";
  std::vector<Row> rows{{"node", "energy (zeusd)"}};
  for (const NodeShare& share : nodes)
    rows.push_back({share.node.empty() ? "others" : OneLineForTerminal(share.node),
                    WithSigma(share.energy, share.sigma)});
  rows.push_back({"all", WithSigma(Joules(SumOf(nodes)), Joules(SigmaOf(nodes)))});
  return text + AlignedRows({Align::kLeft, Align::kRight}, rows);
}

Json ReportJson(const std::vector<AccountedLine>& lines, const std::vector<NodeShare>& nodes) {
  Json steps = Json::array();
  for (const AccountedLine& line : lines)
    steps.push_back({{"id", line.id},
                     {"name", line.name},
                     {"state", line.state},
                     {"seconds", line.elapsed ? Json(line.elapsed->count()) : Json()},
                     {"energy_joules", line.energy ? Json(line.energy->value()) : Json()}});
  Json shares = Json::array();
  for (const NodeShare& share : nodes)
    shares.push_back({{"node", share.node.empty() ? Json() : Json(share.node)},
                      {"energy_joules", share.energy.value()},
                      {"sigma_joules", share.sigma.value()}});
  return {{"accounting", std::move(steps)},
          {"nodes", std::move(shares)},
          {"energy_joules", nodes.empty() ? Json() : Json(SumOf(nodes))},
          {"sigma_joules", nodes.empty() ? Json() : Json(SigmaOf(nodes))}};
}

}  // namespace zeus::cli
