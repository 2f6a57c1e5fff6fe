#pragma once

#include <optional>
#include <string>
#include <vector>

#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"
#include "zeus/base/statistics.h"
#include "zeus/replay/contender.h"
#include "zeus/replay/history/run_history.h"
#include "zeus/report/figure.h"

// What would have come of a recorded job under another eta, on another GPU model, by another
// policy?
namespace zeus::replay {

struct WhatIfQuestion {
  std::optional<double> eta{};  // nullopt: the job's own.
  std::string gpu_model{};      // Empty: where it ran.
  std::vector<ContenderSpec> contenders{};
  std::int64_t recurrences = 0;  // 0: as many as were recorded.
  int seeds = 50;
};

// Mean over the seeds, their standard deviation, and from which to which mean it goes if another
// workload of the catalogue is the one that translates (the same twice where nothing is
// translated).
struct Estimate {
  double mean = 0.0;
  double deviation = 0.0;
  double low = 0.0;
  double high = 0.0;
};

struct WhatIfOutcome {
  std::string contender{};
  Estimate energy{};   // Joules, of all recurrences.
  Estimate time{};     // Seconds.
  Estimate cost{};     // Joules.
  Estimate reached{};  // The share of recurrences that reach the target.
};

struct WhatIfAnswer {
  std::string job_id{};
  std::string recorded_gpu_model{};
  std::string gpu_model{};
  double eta = 0.5;
  std::int64_t recorded_recurrences = 0;
  Usage recorded{};  // What was really spent, at the eta asked for.
  std::int64_t recurrences = 0;
  std::vector<WhatIfOutcome> outcomes{};
  std::optional<int> best_batch_size{};  // nullopt: none always reaches the target.
  std::optional<Watts> best_limit{};
  std::vector<std::string> measured{};   // What the answer rests on.
  std::vector<std::string> estimated{};  // What was carried over from elsewhere.
  std::vector<std::string> unknown{};    // What cannot be answered.
};

// kInvalidArgument for an unknown GPU model or contender, kNotFound when no run came to an end.
Result<WhatIfAnswer> Answer(const RunHistory& history, const WhatIfQuestion& question);

Json ToJson(const WhatIfAnswer& answer);  // docs/formats.md
report::Report ToReport(const WhatIfAnswer& answer);

}  // namespace zeus::replay
