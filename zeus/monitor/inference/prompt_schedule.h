#pragma once

#include <cmath>
#include <deque>
#include <vector>

#include "zeus/monitor/inference/duration_model.h"
#include "zeus/monitor/inference/tracked_request.h"

namespace zeus {

// Finds out in which iterations an engine worked on which prompt.
//
// Three things are known. Prompts are worked on in the order of arrival, each until its first token
// comes. An iteration has room for a fixed number of tokens, the budget, which decoding sequences
// use first. And what an iteration took longer than its decoding explains was prompt work. The
// budget is inferred from iterations that ended while prompts were waiting. Where rule and duration
// agree the rule is taken, since it is exact; otherwise the duration. Iterations in which nobody
// decodes give no token unless a prompt is finished: such a stretch is divided by the budget.
// One owner.
class PromptSchedule {
 public:
  PromptSchedule(RequestTable& requests, DurationModel& durations)
      : requests_(requests), durations_(durations) {}

  void Arrived(RequestIndex request) { queue_.push_back(request); }
  // The request ended, or will be forgotten.
  void Remove(RequestIndex request);
  // Gives prompt work to `seen` and appends it to `done`, in several parts if there must have been
  // several iterations.
  void Process(EngineIteration seen, std::deque<EngineIteration>& done);

  // The time that the latest iteration should have taken to decode; 0 while that is not known.
  double decode_time() const { return decode_time_; }
  // The number of tokens for which an iteration has room; 0 while unknown.
  double budget() const { return budget_; }
  void set_strangers(double sequences) { strangers_ = sequences; }
  void set_jitter(double jitter) { jitter_ = jitter; }
  // Whether another engine works on the same GPUs at present.
  void set_shared(bool shared) { shared_ = shared; }

 private:
  struct Waiting {
    RequestIndex request;
    double rest;  // Prompt tokens that are left, as well as known.
    double variance;
    bool finishes;  // Its first token came with this iteration.
    double given = 0;

    // No more tokens are likely to be left.
    double Most() const { return rest + 3 * std::sqrt(variance); }
  };

  std::vector<Waiting> WaitingAt(const EngineIteration& seen, double time) const;
  void GiveWork(const EngineIteration& seen, std::vector<Waiting>& waiting);
  // Prompt tokens of one iteration: those of the prompts that finish in it, as they were counted
  // and as they are given, and those for the other prompts.
  struct Work {
    double finishing;
    double to_finishing;
    double rest;
  };
  void Distribute(std::vector<Waiting>& waiting, Work work) const;
  void LearnStretch();
  double TokensByTime(double rest_of_time, const std::vector<Waiting>& waiting,
                      double sequences) const;
  double TokenDoubt(double duration) const;
  void LearnBudget(double tokens);
  void Finish(const std::vector<Waiting>& waiting);
  void LinkSuccessor(const std::vector<Waiting>& waiting);
  void LearnDurations(const EngineIteration& seen, const std::vector<Waiting>& waiting,
                      double iterations);
  void AddSilentDecoders(EngineIteration& iteration);
  double HiddenWork(double duration, std::vector<Waiting>& waiting, double room) const;
  std::vector<EngineIteration> Chunks(const EngineIteration& seen, std::vector<Waiting>& waiting,
                                      double left, double room);
  double SilentTime(const std::vector<Waiting>& waiting) const;
  bool EndsInOnePiece(const std::vector<Waiting>& waiting) const;
  bool AnySilentAfter(double time) const;
  double ToldPromptEnd(const EngineIteration& seen, const std::vector<Waiting>& waiting) const;
  double PromptTime(const EngineIteration& seen, const std::vector<Waiting>& waiting) const;
  double PromptsEnd(const EngineIteration& seen, const std::vector<Waiting>& waiting,
                    double work) const;
  // `pace` is the duration of the iterations over the predicted one.
  struct Span {
    double begin;
    double end;
    double pace;
  };
  void DecodeSilently(const Span& span, std::vector<EngineIteration>& parts);
  void Split(const EngineIteration& seen, std::vector<Waiting>& waiting,
             std::deque<EngineIteration>& done);
  IterationLoad DecodeLoad(const EngineIteration& seen) const;

  RequestTable& requests_;
  DurationModel& durations_;
  std::deque<RequestIndex> queue_;    // In order of arrival, without first token.
  std::vector<RequestIndex> silent_;  // Decoding requests that are not streamed.
  std::vector<double> budget_samples_;
  std::size_t next_sample_ = 0;
  double budget_ = 0;
  double decode_time_ = 0;
  double strangers_ = 0;
  bool shared_ = false;
  double jitter_ = 0.0005;
  // The present stretch of iterations with prompt work.
  IterationLoad stretch_{};
  double stretch_time_ = 0;
  std::vector<RequestIndex> stretch_requests_;
  bool stretch_broken_ = false;
};

}  // namespace zeus
