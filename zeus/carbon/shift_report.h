#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/carbon/accounting.h"
#include "zeus/carbon/carbon_accounting.h"

namespace zeus {

// A shifted run when it is over: what it caused, by the values that really came, beside what the
// same energy would have caused from the first moment on. What a forecast promised counts nowhere.
struct ShiftReport {
  struct Amount {
    double value = 0;
    double sigma = 0;
  };
  ShiftGoal goal = ShiftGoal::kCarbon;
  std::string unit{};       // "g" of CO2e, or a currency.
  WallTime first_moment{};  // The run could have begun then,
  WallTime started{};       // and did so then.
  Seconds paused{0};        // Together, between start and end.
  std::optional<Amount> actual{};
  std::optional<Amount> at_once{};
  std::optional<Amount> saved{};             // at_once - actual; their common error cancels.
  std::optional<double> promised_percent{};  // By the forecast, for comparison.
  std::string unknown_because{};             // Why an amount is missing.
  std::vector<std::string> notes{};
};

// `pieces` are the run, in order, with pauses between them; `sigma` is that of their energy.
ShiftReport JudgeShift(const CarbonAccounting& accounting, ShiftGoal goal, WallTime first_moment,
                       const EnergyUse& run);

// "shifted by 5.2 h: 1.21 ± 0.03 kg CO2e instead of 1.62 ± 0.04 kg at the first moment (-25.3 ±
// …)".
std::string ToSentence(const ShiftReport& report);
Json ToJson(const ShiftReport& report);

// "1.21 ± 0.03 kg CO2e" or "0.31 ± 0.01 EUR".
std::string AmountText(const ShiftReport::Amount& amount, const std::string& unit);

}  // namespace zeus
