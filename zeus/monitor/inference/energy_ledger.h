#pragma once

#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "zeus/base/nonnegative_fit.h"
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
//
// The energy of an engine's accounts is at every moment the sum over its requests: whatever one
// request gets beyond its share of an interval, others of that interval pay at once. Counts that
// come late may also move energy between the phases of a request, which its accounts do not follow.
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

  // Adds energy for which no request can be charged.
  void AddOther(double energy) {
    accounts_.other += Joules(energy);
    accounts_.measured += Joules(energy);
  }

  // The work of a request that is in no settled interval yet, and the energy that is predicted for
  // it.
  struct Rest {
    double share = 1;    // Its part of the fixed energy of its last iteration.
    double worked = 0;   // Prompt tokens, with those of settled intervals.
    double prompt = 0;   // Prompt tokens in iterations that are not settled.
    double decoded = 0;  // Decoded tokens, without those of settled intervals.
    double prefill = 0;
    double decode = 0;
    EnergyTerms prefill_terms{};
    EnergyTerms decode_terms{};
  };
  // `iterations` are those of its engine that are not settled, or only in part.
  Rest PredictRest(RequestIndex request, const std::deque<EngineIteration>& iterations) const;
  // The energy that tokens of a prompt after those `before` are predicted to take.
  double PredictPrompt(const TrackedRequest& request, double tokens, double before) const;
  // Measured over predicted energy, lately.
  double scale() const { return scale_; }
  // Root mean square of the residuals of intervals over what was predicted for them.
  double relative_error() const { return relative_error_; }
  // A correction by counts that came after the energy was divided, as far as it can be made.
  struct Correction {
    double prefill = 0;  // Paid by the other requests of the last interval.
    double decode = 0;
    double own = 0;  // Goes from the request's own decode phase to its prefill.
  };
  Correction PlanCorrection(RequestIndex index, const TrackedRequest& request, double prefill,
                            double decode) const;
  void Correct(RequestIndex request, double prefill, double decode);
  // Moves energy of prompts to `request` from another. Returns the part of it that could be moved.
  double Trade(RequestIndex request, RequestIndex other, double amount);
  // The most power that the group is likely to have taken lately.
  double power_bound() const;
  // One standard deviation of the energies so far.
  struct Sigmas {
    double total;
    double prefill;
    double decode;
  };
  Sigmas SigmasOf(const TrackedRequest& request, double prefill, double decode) const;

  // Everything before this moment has been settled.
  double settled_until() const { return settled_until_; }

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
    EngineIndex engine = 0;
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
    // Predicted energies of the interval, and energies of the requests that took part in it.
    double predicted_prefill = 0;
    double predicted_decode = 0;
    double paid_prefill = 0;
    double paid_decode = 0;
    double heavy = 0;         // Prompt tokens in iterations whose clock was low.
    double mean_clock = 1;    // In iterations with prompts, lately.
    double mean_share = 1;    // One participant's part of the fixed energy of an iteration, lately.
    double mean_experts = 0;  // The experts' part of the terms, lately.
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
  EnergyTerm PromptTermAt(double clock) const;
  Share& ShareOf(RequestIndex request, EngineIndex engine);
  bool IsOpen(const Share& share) const;
  Sums Predict(const MeasuredInterval& interval);
  double PlacementError() const;
  double FindOther(const MeasuredInterval& interval, const Sums& sums);
  // How the predictions of an interval become energies of requests.
  struct Scaling {
    double busy;    // Predicted energy of all requests and strangers.
    double factor;  // Energy left for requests and strangers, over its prediction.
    double smooth;  // The same without the noise of this one interval.
    double noise;   // Relative error of the sensor.
    double placed;  // Relative error by prompt work that belongs to other intervals.
  };
  void AddUnsettled(RequestIndex index, const EngineIteration& iteration, Rest& rest) const;
  void Credit(const Share& share, const Scaling& scaling);
  void SpreadNoise(const Scaling& scaling);
  void Doubt(const Share& share);
  using Phase = double TrackedRequest::*;
  void Move(RequestIndex to, Phase phase, double amount);
  bool IsPeer(const Share& share, RequestIndex request) const;
  double EnergyOfPeers(RequestIndex request, Phase phase) const;
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

  double settled_until_ = -std::numeric_limits<double>::infinity();
  double scale_ = 1;
  double peak_power_ = 0;  // The highest of late.
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
