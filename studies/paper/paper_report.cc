#include "studies/paper/paper_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>

#include "studies/paper/claims.h"
#include "studies/paper/drawing.h"
#include "studies/paper/evaluation_figures.h"
#include "studies/paper/motivation_figures.h"
#include "zeus/base/json.h"
#include "zeus/replay/job_comparison.h"

namespace zeus::replay::paper {
namespace {

constexpr int kReferenceSeeds = 50;
constexpr double kAgreement = 3.0;  // Standard errors of the difference.

struct ComparedFigure {
  const char* name;
  double ReferenceFigures::*reference;
  double ReplaySummary::*ours;
  double rounding;
  int decimals;
};

constexpr ComparedFigure kCompared[] = {
    {"energy", &ReferenceFigures::energy, &ReplaySummary::last_five_energy, 0.0005, 3},
    {"time", &ReferenceFigures::time, &ReplaySummary::last_five_time, 0.0005, 3},
    {"cost", &ReferenceFigures::cost, &ReplaySummary::last_five_cost, 0.0005, 3},
    {"regret of 50", &ReferenceFigures::regret_of_50, &ReplaySummary::regret_of_50, 0.005, 2},
    {"regret", &ReferenceFigures::regret, &ReplaySummary::regret, 0.005, 2},
};

struct Difference {
  const ReferenceFigures* setting = nullptr;
  const ComparedFigure* figure = nullptr;
  double reference = 0.0;
  SampleSummary ours{};

  // In standard errors, beyond what the reference was rounded by: its 50 seeds scatter as ours do.
  // nullopt: beyond it, but the seeds came to the same, so that nothing is known of the scatter.
  std::optional<double> StandardErrors() const {
    const double apart = std::abs(ours.mean - reference) - figure->rounding;
    if (apart <= 0.0) return 0.0;
    if (ours.StandardDeviation() <= 0.0) return std::nullopt;
    return apart /
           std::hypot(ours.StandardError(), ours.StandardDeviation() / std::sqrt(kReferenceSeeds));
  }
};

std::vector<Difference> Differences(const Study& study) {
  std::vector<Difference> differences;
  for (const GpuResults& gpu : study.settings) {
    for (const MatchResult& result : gpu.contender("zeus").workloads) {
      const auto setting =
          std::ranges::find(kReferenceFigures, result.match.job->name(), &ReferenceFigures::name);
      if (setting == kReferenceFigures.end()) continue;
      for (const ComparedFigure& figure : kCompared)
        differences.push_back({.setting = &*setting,
                               .figure = &figure,
                               .reference = (*setting).*figure.reference,
                               .ours = Mean(result, figure.ours)});
    }
  }
  return differences;
}

}  // namespace

report::Table ReferenceTable(const Study& study) {
  report::Table table{
      .id = "table-reference",
      .title = "zeus here and in the reference's simulator",
      .caption =
          "Means over the seeds; apart: standard errors of the difference, beyond what the "
          "reference was rounded by.",
      .columns = {"setting", "figure", "reference", "ours", "± deviation", "apart"}};
  for (const Difference& difference : Differences(study))
    table.rows.push_back(
        {{.text = std::string(difference.setting->name)},
         {.text = difference.figure->name},
         NumberCell(difference.reference, difference.figure->decimals),
         NumberCell(difference.ours.mean, difference.figure->decimals),
         NumberCell(difference.ours.StandardDeviation(), difference.figure->decimals),
         difference.StandardErrors() ? NumberCell(*difference.StandardErrors(), 1)
                                     : report::Cell{.text = "-"}});
  return table;
}

Claim ReferenceClaim(const Study& study) {
  const std::vector<Difference> differences = Differences(study);
  double furthest = 0.0;
  std::size_t agree = 0, unjudged = 0;
  for (const Difference& difference : differences) {
    const std::optional<double> apart = difference.StandardErrors();
    furthest = std::max(furthest, apart.value_or(0.0));
    if (!apart)
      ++unjudged;
    else if (*apart <= kAgreement)
      ++agree;
  }
  return {.section = "reference",
          .claim = "energy, time and regret of zeus are those of the reference's simulator",
          .paper = fmt::format("{} figures of 50 seeds", differences.size()),
          .ours = fmt::format("{} agree within {:g} standard errors; furthest {:.1f}", agree,
                              kAgreement, furthest),
          .verdict = agree == differences.size() ? Verdict::kWithinSpread : Verdict::kDiffers,
          .remark = unjudged == 0 ? ""
                                  : fmt::format("{} are the same with all seeds, and not that of "
                                                "the reference: there may be too few seeds",
                                                unjudged)};
}

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

std::string CountClaims(std::span<const Claim> claims, Verdict verdict) {
  const auto count = std::ranges::count(claims, verdict, &Claim::verdict);
  const bool many_differ = verdict == Verdict::kDiffers && count != 1;
  return fmt::format("{} {}", count, many_differ ? "differ" : ToString(verdict));
}

std::vector<std::string> Findings(std::span<const Claim> claims) {
  std::vector<std::string> findings{fmt::format(
      "Of {} claims: {}, {}, {}, {}.", claims.size(), CountClaims(claims, Verdict::kReproduced),
      CountClaims(claims, Verdict::kWithinSpread), CountClaims(claims, Verdict::kDiffers),
      CountClaims(claims, Verdict::kNotCovered))};
  for (const Claim& claim : claims)
    if (claim.section == "ours")
      findings.push_back(fmt::format("{}: {}.", claim.claim, claim.ours));
  return findings;
}

// Returns the remarks about the recorded jobs.
std::vector<std::string> MakeRemarks(const Study& study) {
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

Json SummaryJson(const MatchResult& result) {
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

Json SettingsJson(const Study& study) {
  Json settings = Json::array();
  for (std::size_t gpu = 0; gpu < study.gpus.size(); ++gpu) {
    for (std::size_t i = 0; i < study.gpus[gpu].size(); ++i) {
      const ReplayJob& job = study.gpus[gpu][i];
      Json policies = Json::object();
      for (const WorkloadResults& contender : study.settings[gpu].contenders)
        policies[contender.name] = SummaryJson(contender.workloads[i]);
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
          {"remarks", MakeRemarks(reproduction.study)},
          {"claims", std::move(claims)},
          {"settings", SettingsJson(reproduction.study)},
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
  if (const auto remarks = MakeRemarks(reproduction.study); !remarks.empty())
    report.sections.push_back(
        {.title = "What is missing in the traces", .tables = {RemarksTable(remarks)}});
  return report;
}

}  // namespace zeus::replay::paper
