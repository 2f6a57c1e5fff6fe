#include "studies/paper/paper_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "studies/paper/claims.h"
#include "studies/paper/drawing.h"
#include "studies/paper/evaluation_figures.h"
#include "studies/paper/motivation_figures.h"
#include "studies/paper/reference_comparison.h"
#include "zeus/base/json.h"

namespace zeus::replay::paper {
namespace {

const ReplayJob& UsualJob(const Study& study) { return study.usual_jobs().front(); }

report::Section MotivationSection(const Study& study) {
  const JobsOfGpu& jobs = study.usual_jobs();
  return {.title = "Opportunities and trade-offs (§2, appendices A to C)",
          .text = "What is known of the jobs, without any policy.",
          .tables = {WorkloadTable(jobs), GpuTable(study.gpus), SweepTable(study.gpus)},
          .figures = {SavingsFigure(jobs), TradeoffFigure(UsualJob(study)),
                      BatchSizeFigure(UsualJob(study)), SavingsByGpuFigure(study.gpus),
                      TradeoffsFigure(jobs), BatchSizesFigure(jobs), LimitsFigure(jobs)}};
}

report::Section PerformanceSection(const Study& study) {
  return {.title = "Performance (§6.2, appendices D, E and G)",
          .text = "Policies that start with nothing, over 2|B||P| recurrences of each job.",
          .tables = {SettingsTable(study), ReferenceTable(study)},
          .figures = {LastFiveFigure(study), RegretFigure(study), SearchPathFigure(study),
                      GpuFigure(study), RegretsFigure(study), ZeusPathsFigure(study),
                      GridPathsFigure(study), LastFiveByGpuFigure(study)}};
}

// Grid search may take many times what the default does, others save a few percent.
report::Figure ClusterFigure(const ClusterComparison& cluster) {
  report::Figure figure = replay::SavingsFigure(cluster);
  figure.id = "figure-9";
  figure.title = "Figure 9: Energy and time on a cluster, normalised by the default";
  for (report::Panel& panel : figure.panels) {
    panel.y.logarithmic = true;
    panel.y.from_zero = false;
  }
  return figure;
}

report::Section ClusterSection(const Reproduction& reproduction) {
  return {.title = "On a cluster (§6.3)",
          .text = "Replayed: " + reproduction.cluster.source + ".",
          .figures = {ClusterFigure(reproduction.cluster)}};
}

report::Section DriftSection(const Reproduction& reproduction) {
  return {.title = "Data that drift (§6.4)", .figures = {DriftFigure(reproduction.drift)}};
}

report::Section SensitivitySection(const Study& study) {
  return {.title = "Sensitivity and ablation (§6.7, appendix F)",
          .figures = {EtaFrontFigure(UsualJob(study)), BetaFigure(study), AblationFigure(study),
                      EtaFigure(study)}};
}

std::string CountOf(std::span<const Claim> claims, Verdict verdict) {
  const auto count = std::ranges::count(claims, verdict, &Claim::verdict);
  const bool many_differ = verdict == Verdict::kDiffers && count != 1;
  return fmt::format("{} {}", count, many_differ ? "differ" : ToString(verdict));
}

std::vector<std::string> Findings(std::span<const Claim> claims) {
  std::vector<std::string> findings{
      fmt::format("Of {} claims: {}, {}, {}, {}.", claims.size(),
                  CountOf(claims, Verdict::kReproduced), CountOf(claims, Verdict::kWithinSpread),
                  CountOf(claims, Verdict::kDiffers), CountOf(claims, Verdict::kNotCovered))};
  for (const Claim& claim : claims)
    if (claim.section == "ours")
      findings.push_back(fmt::format("{}: {}.", claim.claim, claim.ours));
  return findings;
}

// Returns the remarks about the recorded jobs.
std::vector<std::string> RemarksOf(const Study& study) {
  std::vector<std::string> remarks;
  for (const JobsOfGpu& jobs : study.gpus)
    for (const ReplayJob& job : jobs)
      remarks.insert(remarks.end(), job.remarks.begin(), job.remarks.end());
  return remarks;
}

report::Table RemarksTable(const std::vector<std::string>& remarks) {
  report::Table table{.id = "table-missing",
                      .title = "Batch sizes without rows, and defaults that others stand in for",
                      .caption = "A batch size needs both power and training rows to be replayed.",
                      .columns = {"setting", "remark"}};
  for (const std::string& remark : remarks) {
    const std::size_t colon = remark.find(": ");
    if (colon == std::string::npos)
      table.rows.push_back({{.text = ""}, {.text = remark}});
    else
      table.rows.push_back({{.text = remark.substr(0, colon)}, {.text = remark.substr(colon + 2)}});
  }
  return table;
}

Json SummaryOf(const MatchResult& result) {
  const auto number = [&](double ReplaySummary::*figure) {
    const double mean = Mean(result, figure).mean;
    return FiniteOrNull(mean);
  };
  const double error = Mean(result, &ReplaySummary::regret).StandardError();
  return {{"eta5_vs_default", number(&ReplaySummary::last_five_energy)},
          {"tta5_vs_default", number(&ReplaySummary::last_five_time)},
          {"cost5_vs_oracle", number(&ReplaySummary::last_five_cost)},
          {"regret50", number(&ReplaySummary::regret_of_50)},
          {"regret", number(&ReplaySummary::regret)},
          {"regret_sem", FiniteOrNull(error)}};
}

Json SettingsOf(const Study& study) {
  Json settings = Json::array();
  for (std::size_t gpu = 0; gpu < study.gpus.size(); ++gpu) {
    for (std::size_t i = 0; i < study.gpus[gpu].size(); ++i) {
      const ReplayJob& job = study.gpus[gpu][i];
      Json policies = Json::object();
      for (const WorkloadResults& contender : study.settings[gpu].contenders)
        policies[contender.name] = SummaryOf(contender.workloads[i]);
      settings.push_back({{"gpu", job.gpu_model},
                          {"workload", job.label},
                          {"recurrences", job.recurrences()},
                          {"policies", std::move(policies)}});
    }
  }
  return settings;
}

}  // namespace

std::vector<Claim> AllClaims(const Reproduction& reproduction) {
  std::vector<Claim> claims;
  const auto add = [&claims](std::vector<Claim> more) {
    std::ranges::move(more, std::back_inserter(claims));
  };
  add(MotivationClaims(reproduction.study));
  add(PerformanceClaims(reproduction.study));
  add(ClusterClaims(reproduction.cluster));
  claims.push_back(DriftClaim(reproduction.drift));
  add(SensitivityClaims(reproduction.study));
  claims.push_back(ReferenceClaim(reproduction.study));
  return claims;
}

Json ToJson(const Reproduction& reproduction) {
  Json claims = Json::array();
  for (const Claim& claim : AllClaims(reproduction))
    claims.push_back({{"section", claim.section},
                      {"claim", claim.claim},
                      {"paper", claim.paper},
                      {"ours", claim.ours},
                      {"verdict", ToString(claim.verdict)},
                      {"remark", claim.remark}});
  return {{"schema", "zeus.replay_paper/1"},
          {"source", reproduction.source},
          {"seeds", reproduction.seeds},
          {"remarks", RemarksOf(reproduction.study)},
          {"claims", std::move(claims)},
          {"settings", SettingsOf(reproduction.study)},
          {"cluster", replay::ToJson(reproduction.cluster)}};
}

report::Report ToReport(const Reproduction& reproduction) {
  const std::vector<Claim> claims = AllClaims(reproduction);
  report::Report report{
      .title = "The Zeus paper, reproduced",
      .subtitle = fmt::format("{}, {} seeds", reproduction.source, reproduction.seeds),
      .findings = Findings(claims),
      .remarks = {"Runs are replayed, not measured: epochs are drawn from the recorded runs, time "
                  "and power of an epoch are those of its batch size and power limit.",
                  "Bars and lines are means over the seeds; spread is one standard deviation "
                  "unless a caption says otherwise."}};
  report.sections = {{.title = "Claims", .tables = {ClaimsTable(claims)}},
                     MotivationSection(reproduction.study),
                     PerformanceSection(reproduction.study),
                     ClusterSection(reproduction),
                     DriftSection(reproduction),
                     SensitivitySection(reproduction.study)};
  if (const auto remarks = RemarksOf(reproduction.study); !remarks.empty())
    report.sections.push_back(
        {.title = "What is missing in the traces", .tables = {RemarksTable(remarks)}});
  return report;
}

}  // namespace zeus::replay::paper
