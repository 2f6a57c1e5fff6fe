#pragma once

#include <span>
#include <string>
#include <vector>

#include "studies/paper/study.h"
#include "zeus/replay/cluster/cluster_report.h"
#include "zeus/report/figure.h"

// A claim of the paper, and the number that comes out here.
namespace zeus::replay::paper {

enum class Verdict {
  kReproduced,    // The number as printed, or the statement.
  kWithinSpread,  // 95 % of the experiments (seeds) enclose the paper's number.
  kDiffers,
  kNotCovered,  // Not in the traces.
};
std::string_view ToString(Verdict verdict);

struct Claim {
  std::string section{};  // "§6.2"
  std::string claim{};
  std::string paper{};
  std::string ours{};
  Verdict verdict = Verdict::kNotCovered;
  std::string remark{};  // Why it differs; what was done.
};

// A number of the paper, and ours by seed (one value if nothing is random in it).
struct Comparison {
  double paper = 0.0;
  std::vector<double> ours{};
  double rounding = 0.0;  // The paper's number is exact to this.
};
Verdict Judge(const Comparison& comparison);
// The worse of two.
Verdict Both(Verdict a, Verdict b);
Verdict Holds(bool statement);

// Shares as percent: "23.8 %", with seeds "17.2 ± 0.9 %" (mean and standard deviation).
std::string MeanPercentText(const std::vector<double>& shares);

std::vector<Claim> MotivationClaims(const Study& study);   // §2, §3, appendices A-C.
std::vector<Claim> PerformanceClaims(const Study& study);  // §6.2, §6.5, §6.6.
std::vector<Claim> SensitivityClaims(const Study& study);  // §6.7, appendices F and G.

report::Table ClaimsTable(std::span<const Claim> claims);

// §6.3: on a cluster of recurring jobs. `default`, `zeus` and `grid` are among its contenders.
std::vector<Claim> ClusterClaims(const ClusterComparison& cluster);

}  // namespace zeus::replay::paper
