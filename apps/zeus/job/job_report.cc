#include "apps/zeus/job/job_report.h"

#include <fmt/format.h>

#include <vector>

#include "apps/zeus/html_page.h"
#include "apps/zeus/job/energy_text.h"
#include "apps/zeus/job/job_plot.h"
#include "zeus/base/wall_time_text.h"
#include "zeus/base/xml.h"
#include "zeus/report/report.h"

namespace zeus::cli {
namespace {

using Row = std::vector<std::string>;

std::string TableOf(const Row& header, const std::vector<Row>& rows) {
  std::string text = "<div class=\"wide\"><table>\n<thead><tr>";
  for (const std::string& cell : header) text += "<th scope=\"col\">" + EscapeXml(cell) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (const Row& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += "<td>" + EscapeXml(cell) + "</td>";
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string EnergyOrDash(const std::optional<Joules>& energy) {
  return energy ? EnergyText(*energy) : "";
}

std::string ArmsSection(const Lessons& lessons) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < lessons.arms.arms.size(); ++i) {
    const ArmBelief& arm = lessons.arms.arms[i];
    const MeasuredArm& measured = lessons.measured[i];
    const bool known = measured.reached > 0;
    rows.push_back(
        {fmt::to_string(arm.batch_size), fmt::to_string(arm.runs), fmt::to_string(arm.converged),
         arm.epochs ? fmt::format("{:.1f}", *arm.epochs) : "", EnergyOrDash(arm.epoch_cost),
         EnergyOrDash(arm.cost), EnergyOrDash(arm.cost_sigma),
         known ? EnergyText(Joules(measured.cost.mean)) : "",
         known && measured.cost.sigma ? EnergyText(Joules(*measured.cost.sigma)) : "",
         fmt::format("{}{}", arm.batch_size == lessons.arms.best_batch_size ? "chosen " : "",
                     arm.batch_size == lessons.cheapest ? "best" : "")});
  }
  return TableOf({"batch size", "runs", "reached", "epochs", "epoch cost", "epochs to target cost",
                  "± sigma", "a run took", "± sigma", ""},
                 rows);
}

std::string TrialsSection(const Lessons& lessons) {
  std::vector<Row> rows;
  for (const Trial& trial : lessons.trials) {
    rows.push_back(
        {fmt::to_string(trial.number), fmt::to_string(trial.recurrence),
         fmt::to_string(trial.batch_size), std::string(Name(trial.status)),
         fmt::to_string(trial.epochs), trial.metric ? fmt::format("{:.4g}", *trial.metric) : "",
         TimeText(trial.time), EnergyText(trial.energy), EnergyText(trial.cost),
         trial.power_limit ? fmt::format("{:g} W", trial.power_limit->value()) : "", trial.reason});
  }
  return TableOf({"trial", "recurrence", "batch size", "status", "epochs", "metric", "time",
                  "energy", "cost", "limit", "how it ended"},
                 rows);
}

std::string Facts(const Lessons& lessons) {
  const JobSpec& spec = lessons.job.spec;
  const auto fact = [](const char* name, const std::string& value) {
    return fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, EscapeXml(value));
  };
  std::string text = "<dl>\n";
  text += fact("policy", spec.policy + ", " + lessons.arms.stage);
  text += fact("target", fmt::format("{:g}, {} is better", spec.target_metric,
                                     spec.higher_is_better ? "higher" : "lower"));
  text += fact("batch sizes", fmt::format("{}", fmt::join(spec.batch_sizes, ", ")));
  text += fact("default", fmt::to_string(spec.default_batch_size));
  text += fact("eta", fmt::format("{:g}", spec.eta));
  text += fact("GPU model", lessons.arms.gpu_model);
  text += fact("seed", fmt::to_string(lessons.job.seed));
  text += fact("registered", ToText(lessons.job.created_at));
  return text + "</dl>\n";
}

}  // namespace

std::string ToHtml(const Lessons& lessons) {
  const std::string id = EscapeXml(lessons.job.spec.id);
  return HtmlBegin("zeus job: " + id) + fmt::format("<h1>Recurring job {}</h1>\n", id) +
         fmt::format("<pre>{}</pre>\n", EscapeXml(SummaryText(lessons))) +
         "<figure style=\"margin: 0\">\n" + report::ToSvg(PlotOf(lessons)) + "</figure>\n" +
         "<h2>What is believed</h2>\n" + ArmsSection(lessons) + "<h2>Runs</h2>\n" +
         TrialsSection(lessons) + Facts(lessons) + HtmlEnd();
}

}  // namespace zeus::cli
