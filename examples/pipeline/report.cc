#include "examples/pipeline/report.h"

#include <fmt/format.h>

#include <cmath>

#include "zeus/base/json.h"

namespace zeus::examples {
namespace {

// Rounds to two decimals; adding 0.0 turns -0 into 0.
double Percent(double changed, double base) {
  return std::round(1e4 * (changed / base - 1)) / 100 + 0.0;
}

std::string Row(const std::string& name, Seconds time, Joules energy,
                const IterationFigures& base) {
  return fmt::format("{:<28} {:>8.3f} s {:>+7.2f} % {:>11.1f} J {:>+7.2f} %\n", name, time.count(),
                     Percent(time.count(), base.time.count()), energy.value(),
                     Percent(energy.value(), base.energy.value()));
}

// A predicted energy is compared with a predicted baseline, so that errors of the model do not
// count as savings.
IterationFigures PredictedBaseline(const CurrentPlan& plan) {
  return {.time = plan.baseline_time, .energy = plan.baseline_energy};
}

double Saving(Joules energy, Joules base) { return 1 - energy / base; }

std::string StragglerText(const StragglerFigures& figures, const IterationFigures& base) {
  std::string text =
      Row("straggler, plan as before", figures.before.time, figures.before.energy, base);
  if (figures.iterations_until_new_plan == 0) return text + "no new plan\n";
  text += Row("straggler, its own plan", figures.after.time, figures.after.energy, base);
  return text + fmt::format("new plan after {} iteration{}, for a pace of {:.3f} s\n",
                            figures.iterations_until_new_plan,
                            figures.iterations_until_new_plan == 1 ? "" : "s",
                            figures.pace.count());
}

Json FiguresJson(const IterationFigures& figures) {
  return {{"time_seconds", figures.time.count()},
          {"energy_joules", figures.energy.value()},
          {"exact_energy_joules", figures.exact.value()}};
}

}  // namespace

std::string ToText(const StageOutcome& outcome, const RunOptions& options, double time_scale) {
  const IterationFigures& base = outcome.baseline;
  std::string text = fmt::format(
      "{} stages on {}, {} microbatches, 1F1B; {}\n", options.stages,
      options.node.empty() ? options.gpu : "node \"" + options.node + "\"", options.microbatches,
      options.node.empty() ? std::string("virtual time")
                           : fmt::format("real time, {:g} times as fast", time_scale));
  text +=
      fmt::format("measured in {} iterations: up to {} clocks of use, blocking power {:.1f} W\n",
                  outcome.profiling_iterations, outcome.clocks, outcome.blocking_power.value());
  text += fmt::format("{:<28} {:>20} {:>23}\n", "of an iteration", "time", "energy");
  text += Row("highest clock, measured", base.time, base.energy, base);
  text += Row("plan, predicted", outcome.plan.plan.time, outcome.plan.plan.energy,
              PredictedBaseline(outcome.plan));
  text += Row("plan, measured", outcome.planned.time, outcome.planned.energy, base);
  text += fmt::format("measured against predicted: {:+.2f} % energy\n",
                      Percent(outcome.planned.energy.value(), outcome.plan.plan.energy.value()));
  if (outcome.straggler) text += StragglerText(*outcome.straggler, base);
  return text;
}

Json ToJson(const StageOutcome& outcome, const RunOptions& options) {
  Json json{{"stages", options.stages},
            {"microbatches", options.microbatches},
            {"profiling_iterations", outcome.profiling_iterations},
            {"clocks", outcome.clocks},
            {"blocking_power_watts", outcome.blocking_power.value()},
            {"baseline", FiguresJson(outcome.baseline)},
            {"predicted",
             {{"time_seconds", outcome.plan.plan.time.count()},
              {"energy_joules", outcome.plan.plan.energy.value()},
              {"baseline_time_seconds", outcome.plan.baseline_time.count()},
              {"baseline_energy_joules", outcome.plan.baseline_energy.value()},
              {"energy_saving", Saving(outcome.plan.plan.energy, outcome.plan.baseline_energy)}}},
            {"planned", FiguresJson(outcome.planned)}};
  json["planned"]["energy_saving"] = Saving(outcome.planned.energy, outcome.baseline.energy);
  if (outcome.straggler)
    json["straggler"] = {
        {"before", FiguresJson(outcome.straggler->before)},
        {"after", FiguresJson(outcome.straggler->after)},
        {"iterations_until_new_plan", outcome.straggler->iterations_until_new_plan},
        {"pace_seconds", outcome.straggler->pace.count()}};
  return json;
}

}  // namespace zeus::examples
