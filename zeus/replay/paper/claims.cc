#include "zeus/replay/paper/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/base/quantity_text.h"
#include "zeus/replay/paper/drawing.h"

namespace zeus::replay::paper {

std::string_view ToString(Verdict verdict) {
  switch (verdict) {
    case Verdict::kReproduced:
      return "reproduced";
    case Verdict::kWithinSpread:
      return "within spread";
    case Verdict::kDiffers:
      return "differs";
    case Verdict::kNotCovered:
      break;
  }
  return "not covered";
}

Verdict Judge(const Comparison& comparison) {
  constexpr double kSlack = 1e-6;  // Of a value that lies on the edge of being rounded.
  constexpr double kOutside = 0.025;
  const double mean = zeus::Summarize(comparison.ours).mean;
  if (std::abs(mean - comparison.paper) <= comparison.rounding + kSlack)
    return Verdict::kReproduced;
  const double low = Quantile(comparison.ours, kOutside) - comparison.rounding;
  const double high = Quantile(comparison.ours, 1 - kOutside) + comparison.rounding;
  const bool inside = low <= comparison.paper && comparison.paper <= high;
  return inside ? Verdict::kWithinSpread : Verdict::kDiffers;
}

Verdict Both(Verdict a, Verdict b) { return std::max(a, b); }

Verdict Holds(bool statement) { return statement ? Verdict::kReproduced : Verdict::kDiffers; }

std::string PercentText(const std::vector<double>& shares) {
  const SampleSummary summary = zeus::Summarize(shares);
  if (shares.size() == 1) return Percent(summary.mean);
  return FixedWithSigma(100 * summary.mean, 100 * summary.StandardDeviation(), 1) + " %";
}

std::string NumberText(const std::vector<double>& values, int decimals) {
  const SampleSummary summary = zeus::Summarize(values);
  if (values.size() == 1) return fmt::format("{:.{}f}", summary.mean, decimals);
  return FixedWithSigma(summary.mean, summary.StandardDeviation(), decimals);
}

report::Table ClaimsTable(std::span<const Claim> claims) {
  report::Table table{
      .id = "table-claims",
      .title = "What the paper claims, and what comes out here",
      .caption =
          "Ours: mean and standard deviation over the seeds, each a whole experiment. "
          "Within spread: 95 % of the seeds enclose the paper's number.",
      .columns = {"section", "claim", "paper", "ours", "verdict", "remark"}};
  for (const Claim& claim : claims)
    table.rows.push_back({{.text = claim.section},
                          {.text = claim.claim},
                          {.text = claim.paper},
                          {.text = claim.ours},
                          {.text = std::string(ToString(claim.verdict))},
                          {.text = claim.remark}});
  return table;
}

}  // namespace zeus::replay::paper
