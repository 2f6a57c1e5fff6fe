#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "zeus/base/nonnegative_fit.h"

namespace zeus {

// The features of one or several iterations, on which their duration depends.
struct IterationLoad {
  double iterations = 0;
  double sequences = 0;  // Summed over the iterations, as all of the following.
  double context = 0;
  double prompt = 0;
  double attention = 0;
  double heavy = 0;    // Prompt tokens beyond those that take as long as the fixed part.
  double experts = 0;  // ExpertsRead() of each iteration.

  IterationLoad& operator+=(const IterationLoad& other);
};

// How long the iterations of one engine take, learned from what was seen of them.
//
// Iterations while no prompt waits have a known load, and are learned from at once. Stretches of
// iterations with prompt work are learned from as a whole, from a moment without waiting prompts to
// the next one: then the prompt tokens are known whatever the order in which they were worked on.
// The server tells these numbers only when the requests end, so stretches wait for that.
// One owner.
class DurationModel {
 public:
  DurationModel();

  double Predict(const IterationLoad& load) const;
  double fixed() const { return fit()[0]; }
  double per_sequence() const { return fit()[1]; }
  double per_context() const { return fit()[2]; }
  // The time of a prompt token that looks at `context` tokens before it.
  double PerPrompt(double context) const { return fit()[3] + fit()[4] * context; }
  double per_attention() const { return fit()[4]; }
  // The time of an iteration that reads all experts of a mixture, beyond that of a dense model.
  double experts() const { return fit()[6]; }
  // Prompt tokens of one iteration beyond this number take longer: the GPU reaches its power limit
  // and lowers its clock.
  double heavy_from() const { return heavy_from_; }
  // The clock of an iteration with so many prompt tokens, against that of a light one.
  double ClockWith(double prompt) const;
  // The prompt tokens that take `time` in an iteration with so many decoding sequences, if they
  // look at `context` tokens.
  double TokensIn(double time, double context, double sequences) const;
  // The usual error of a prediction, for an iteration without prompt work.
  double error() const { return error_; }
  // False until a stretch with prompt work has been learned from.
  bool knows_prompts() const { return prompt_rows_ > 0; }
  // False until some iterations without prompt work have been learned from.
  bool knows_decoding() const { return decode_rows_ >= kRowsToKnow; }

  void LearnDecode(const IterationLoad& load, double duration);

  // A stretch with prompt work whose prompt tokens are told later, by `requests` calls. Returns its
  // number, never 0.
  std::uint64_t OpenStretch(const IterationLoad& load, double duration, std::size_t requests);
  // `sigma` is 0 where the server told the number.
  void PromptKnown(std::uint64_t stretch, double tokens, double cached, double sigma);

  // Forgets with a half-life, and solves. To be called now and then.
  void Update(double elapsed, double half_life);

 private:
  static constexpr double kRowsToKnow = 100;
  struct Stretch {
    IterationLoad load;
    double duration;
    std::size_t missing;
    double variance = 0;  // The variance of the prompt tokens.
  };
  double DenseTokensIn(double time, double context) const;
  void Learn(const IterationLoad& load, double duration, double variance);

  const NonNegativeFit& fit() const { return is_mixture_ ? mixture_ : dense_; }
  void AddRow(const IterationLoad& load, double duration, double weight);
  void Solve();
  void Compare(const IterationLoad& load, double duration);

  // The same rows, without and with a part of the time that goes with the experts that are read:
  // the second is used where it explains iterations clearly better.
  NonNegativeFit dense_;
  NonNegativeFit mixture_;
  double dense_error_ = 0;
  double mixture_error_ = 0;
  bool is_mixture_ = false;
  std::map<std::uint64_t, Stretch> stretches_;
  std::uint64_t next_stretch_ = 1;
  double error_ = 0.002;
  double decode_rows_ = 0;
  double prompt_rows_ = 0;
  double heavy_from_ = 300;
  bool dirty_ = false;
};

}  // namespace zeus
