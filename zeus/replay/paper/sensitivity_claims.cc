#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "zeus/replay/paper/claims.h"
#include "zeus/replay/paper/configurations.h"
#include "zeus/replay/paper/drawing.h"
#include "zeus/replay/paper/sensitivity.h"

namespace zeus::replay::paper {
namespace {

// Mean and standard error, by variant.
std::vector<SampleSummary> MeansOf(std::span<const WorkloadResults> variants,
                                   const RatioOf& ratio) {
  std::vector<SampleSummary> means;
  for (const WorkloadResults& variant : variants)
    means.push_back(zeus::Summarize(GeometricMeans(variant, ratio)));
  return means;
}

std::string Listing(std::span<const WorkloadResults> variants,
                    std::span<const SampleSummary> means) {
  std::string text;
  for (std::size_t i = 0; i < variants.size(); ++i)
    text += fmt::format("{}{}: {:.3f}", i == 0 ? "" : ", ", variants[i].name, means[i].mean);
  return text;
}

Claim BetaClaim(const Study& study) {
  const std::vector<SampleSummary> means =
      MeansOf(study.betas, CumulativeEnergyOf(study.usual().contender("zeus")));
  const auto best = std::ranges::min_element(means, {}, &SampleSummary::mean) - means.begin();
  const auto usual =
      std::ranges::find(study.betas, kUsualBeta, &WorkloadResults::parameter) - study.betas.begin();
  Claim claim{.section = "§6.7",
              .claim = "β = 2 has the least cumulative energy (geometric mean over workloads)",
              .paper = "among 1.5 to 5",
              .ours = Listing(study.betas, means),
              .verdict = Holds(best == usual)};
  if (best == usual) return claim;
  const SampleSummary& least = means[static_cast<std::size_t>(best)];
  const SampleSummary& two = means[static_cast<std::size_t>(usual)];
  const double gap = two.mean - least.mean;
  const double error = std::hypot(two.StandardError(), least.StandardError());
  constexpr double kScatter = 2.0;
  if (gap < kScatter * error) claim.verdict = Verdict::kWithinSpread;
  claim.remark =
      fmt::format("{} is lower by {:.1f} %, {:.1f} standard errors",
                  study.betas[static_cast<std::size_t>(best)].name, 100 * gap, gap / error);
  return claim;
}

Claim AblationClaim(const Study& study) {
  const std::vector<SampleSummary> means =
      MeansOf(study.ablations, CumulativeEnergyOf(study.usual().contender("zeus")));
  const auto worst = std::ranges::max_element(means, {}, &SampleSummary::mean) - means.begin();
  return {.section = "§6.7",
          .claim = "zeus benefits mostly from early stopping",
          .paper = "largest slowdown without it",
          .ours = Listing(study.ablations, means),
          .verdict =
              Holds(study.ablations[static_cast<std::size_t>(worst)].name == "zeus_no_early_stop"),
          .remark = "cumulative energy, of that of zeus; geometric mean over workloads"};
}

// A factor that only rises, or only falls, with eta.
Claim EtaClaim(const Study& study, const char* what, double ReplaySummary::*figure, bool rises) {
  const std::vector<SampleSummary> means = MeansOf(study.etas, ImprovementOf(figure));
  bool ordered = true;
  for (std::size_t i = 1; i < means.size(); ++i) {
    const double step = means[i].mean - means[i - 1].mean;
    const double error = std::hypot(means[i].StandardError(), means[i - 1].StandardError());
    ordered = ordered && (rises ? step : -step) > -2 * error;
  }
  return {.section = "F",
          .claim = fmt::format("with higher η the improvement of {} {}", what,
                               rises ? "rises" : "falls"),
          .paper = "stated",
          .ours = Listing(study.etas, means),
          .verdict = Holds(ordered),
          .remark = "the default's divided by that of zeus; geometric mean over workloads"};
}

Claim EtaFrontClaim(const Study& study) {
  const auto job = std::ranges::find(study.usual_jobs(), "deepspeech2", &ReplayJob::label);
  const std::vector<Configuration> feasible = FeasibleConfigurations(*job);
  const std::vector<Configuration> front = ParetoFront(feasible);
  int on_front = 0;
  constexpr int kSteps = 10;
  for (int step = 0; step <= kSteps; ++step) {
    const Configuration& best =
        CheapestAt(feasible, static_cast<double>(step) / kSteps, job->max_power);
    on_front += static_cast<int>(std::ranges::count_if(front, [&](const Configuration& other) {
      return other.batch_size == best.batch_size && other.limit == best.limit;
    }));
  }
  return {.section = "§6.7",
          .claim = "the optima for η from 0 to 1 lie on the Pareto front",
          .paper = "closely",
          .ours = fmt::format("{} of {}", on_front, kSteps + 1),
          .verdict = Holds(on_front == kSteps + 1)};
}

Claim GpuClaim(const Study& study) {
  std::string ours;
  bool all = true;
  for (const GpuResults& gpu : study.settings) {
    const auto energy = [](const ReplaySummary& seed) { return seed.last_five_energy; };
    const SampleSummary mean =
        zeus::Summarize(AcrossWorkloads(gpu.contender("zeus").workloads, energy, GeometricMean));
    constexpr double kConsistent = 0.9;
    all = all && mean.mean < kConsistent;
    ours +=
        fmt::format("{}{}: {:.3f}", ours.empty() ? "" : ", ", GpuTitle(gpu.gpu_model), mean.mean);
  }
  return {.section = "§6.7, G",
          .claim = "zeus reduces energy consistently on four generations of GPUs",
          .paper = "stated",
          .ours = std::move(ours),
          .verdict = Holds(all),
          .remark = "energy of the default's; geometric mean over workloads; holds below 0.9"};
}

}  // namespace

std::vector<Claim> SensitivityClaims(const Study& study) {
  return {EtaFrontClaim(study),
          BetaClaim(study),
          AblationClaim(study),
          GpuClaim(study),
          EtaClaim(study, "energy", &ReplaySummary::last_five_energy, true),
          EtaClaim(study, "time", &ReplaySummary::last_five_time, false)};
}

}  // namespace zeus::replay::paper
