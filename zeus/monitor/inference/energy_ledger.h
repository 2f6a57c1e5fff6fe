#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "zeus/monitor/inference/nonnegative_fit.h"
#include "zeus/monitor/inference/tracked_request.h"

namespace zeus {

// One interval of the group's energy sensors.
struct MeasuredInterval {
  double begin = 0;
  double end = 0;
  double energy = 0;  // NaN: unknown.
  double sigma = 0;
};

// Divides measured energy among requests, and learns the law of the energy while doing so.
//
// The energy of an interval is predicted from the iterations in it. Everyone who takes part in an
// iteration pays an equal part of its fixed energy and what is his own: the Shapley value. The
// predictions are then scaled to what was measured, so that every joule is in one account. The law
// itself comes from least squares over all intervals, with a memory that fades.
// One owner.
class EnergyLedger {
 public:
  struct Options {
    double half_life = 600;
    double idle_power = 0;
  };
  EnergyLedger(RequestTable& requests, Options options);

  void AddEngine(const InferenceEngineSpec& spec);
  // The law of durations of an engine, which shapes the first guess of the law of energy: as long
  // as nothing else is known, power is constant.
  void SetDurations(EngineIndex engine, const EnergyTerms& seconds);
  // Other laws hold from now on: those of an earlier time with the same name, or new ones.
  void ChangeSetting(const std::string& setting);
  // Forgets the present law, because it was learned from mistakes.
  void StartAgain();

  // Settles `interval`. `iterations` has the iterations of each engine, in order of time, up to its
  // end at least; those that ended within it are removed.
  void Settle(const MeasuredInterval& interval,
              std::vector<std::deque<EngineIteration>>& iterations);

  // The energy that one more decoded token and all of a prompt are predicted to take.
  double PredictToken(const TrackedRequest& request) const;
  double PredictPrompt(const TrackedRequest& request, double tokens, double before) const;
  // Measured over predicted energy, lately.
  double scale() const { return scale_; }
  // Corrects a request by counts that came after its energy was divided: later intervals pay.
  void Correct(TrackedRequest& request, double prefill, double decode);
  // One standard deviation of the energies so far.
  struct Sigmas {
    double total;
    double prefill;
    double decode;
  };
  Sigmas SigmasOf(const TrackedRequest& request, double prefill, double decode) const;

  const EnergyAccounts& accounts() const { return accounts_; }
  EnergyTerms Law(EngineIndex engine) const;
  EnergyTerms LawSigma(EngineIndex engine) const;
  double idle_power() const;
  double residual_ratio() const {
    return recent_predicted_ > 0 ? recent_measured_ / recent_predicted_ : 1;
  }
  double mean_batch(EngineIndex engine) const { return engines_[engine].mean_batch; }

 private:
  struct Share {
    RequestIndex request;
    EnergyTerms decode{};
    EnergyTerms prefill{};
  };
  struct Engine {
    std::optional<IterationEnergyLaw> prior{};
    double prior_sigma = 0.5;
    EnergyTerms seconds{};
    EnergyTerms law{};
    EnergyTerms total{};      // Work in the interval that is being settled.
    EnergyTerms strangers{};  // The part of sequences that are not ours.
    double mean_batch = 0;
    double heavy = 0;       // Prompt tokens in iterations whose clock was low.
    double mean_clock = 1;  // In iterations with prompts, lately.
  };
  // An interval's sums, while it is being settled.
  struct Sums {
    double idle_time = 0;
    double predicted_idle = 0;
    double predicted_requests = 0;
    double predicted_strangers = 0;
    double predicted() const { return predicted_idle + predicted_requests + predicted_strangers; }
  };

  void Gather(const MeasuredInterval& interval,
              std::vector<std::deque<EngineIteration>>& iterations);
  void GatherIteration(EngineIndex engine, const EngineIteration& iteration, double part);
  void GatherOverlap(EngineIndex index, const EngineIteration& iteration,
                     const MeasuredInterval& interval);
  double BusyTime(const MeasuredInterval& interval);
  Share& ShareOf(RequestIndex request);
  Sums Predict(const MeasuredInterval& interval);
  double FindOther(const MeasuredInterval& interval, const Sums& sums);
  // How the predictions of an interval become energies of requests.
  struct Scaling {
    double busy;            // Predicted energy of all requests and strangers.
    double factor;          // Measured over predicted.
    double request_factor;  // The same for the requests, with what earlier intervals owe.
    double noise;           // Relative error of the sensor.
    bool known;             // The energy was measured.
  };
  void Credit(const Share& share, const Scaling& scaling);
  void Divide(const MeasuredInterval& interval, const Sums& sums, double other);
  void Learn(const MeasuredInterval& interval, const Sums& sums, double other);
  void SolveLaw();

  RequestTable& requests_;
  Options options_;
  std::vector<Engine> engines_;
  NonNegativeFit fit_;  // The idle power, and then the terms of each engine.
  std::unordered_map<std::string, NonNegativeFit> other_settings_;
  std::string setting_;
  EnergyAccounts accounts_;

  std::vector<Share> shares_;
  std::vector<std::pair<double, double>> busy_;
  double idle_time_ = 0;

  double scale_ = 1;
  double carry_ = 0;
  double busy_power_ = 300;
  double relative_error_;  // Root mean square of the residuals over what was predicted.
  double recent_measured_ = 0;
  double recent_predicted_ = 0;
  double rows_ = 0;
  double unsolved_rows_ = 0;
  double unforgotten_ = 0;
  // Work of strangers on the GPU.
  double other_power_ = 0;
  NonNegativeFit excess_fit_;  // Power of others, and factors of prompts and decoding, lately.
  double highest_power_ = 0;
  double unseen_time_ = 0;  // Since the power was last below its limit.
  double residual_power_;
  int excess_intervals_ = 0;
};

}  // namespace zeus
