#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "zeus/monitor/inference/tracked_request.h"

namespace zeus {

// Finds the iterations of one engine in the arrivals of its tokens.
//
// Each running sequence gets one token in each iteration. So the j-th token of a sequence belongs
// to the j-th iteration after that of its first token, however late it arrives: only the place of
// the first token has to be found by its time. The end of an iteration is the earliest arrival of
// its tokens. A sequence that falls far behind, because the server paused it or swallowed tokens,
// is put back in step. Where servers send several tokens per event, iterations between events have
// no arrival of this sequence; others may have some, or their ends are interpolated.
// One owner.
class IterationTracker {
 public:
  explicit IterationTracker(RequestTable& requests, double first_gap)
      : requests_(requests), first_gap_(first_gap) {}

  void Arrived(RequestIndex request, double time);
  // An event that stands for `iterations` of this request's sequences.
  void TokenArrived(RequestIndex request, double time, double iterations);
  void Ended(RequestIndex request, double time);
  // Nothing before `time` will be told any more, except by mistake. Closes iterations.
  void Advance(double time);

  // Iterations that are complete, the oldest first. The caller removes them.
  std::deque<EngineIteration>& closed() { return closed_; }
  // Everything before this time has been closed.
  double frontier() const;
  // Requests that arrived and have not ended, and the part of them that has had a token.
  std::size_t in_flight() const { return in_flight_; }
  std::size_t decoding() const { return active_.size(); }
  // The usual duration of an iteration without prompt work, and how late tokens are.
  double typical_duration() const { return typical_duration_; }
  double jitter() const { return jitter_; }
  // How long an iteration with the sequences of late takes without prompt work, by what was learned
  // of it. Where prompts always wait, no iteration shows it.
  void set_typical_duration(double duration) { typical_duration_ = duration; }
  // Iterations that an event of the engine stands for, on average.
  void set_event_iterations(double iterations);

 private:
  struct Open {
    double end = 0;
    bool timed = false;
    std::vector<DecodePart> decode{};
    std::vector<RequestIndex> firsts{};
  };
  struct First {
    RequestIndex request;
    double time;
    double iterations;
  };

  Open& At(std::int64_t index);
  std::int64_t last_index() const { return base_ + static_cast<std::int64_t>(open_.size()) - 1; }
  double FirstGap() const;
  double LongestLag() const;
  void PlaceFirst(const First& first);
  void PlaceReadyFirsts(double now);
  std::int64_t IterationBefore(double time) const;
  std::int64_t NearestIteration(double time) const;
  void Deliver(TrackedRequest& request, RequestIndex index, double time);
  std::int64_t InStep(TrackedRequest& request, std::int64_t index, double time);
  void TakeBack(RequestIndex request, std::int64_t iterations);
  bool Complete(std::int64_t index) const;
  bool FillTime(double now);
  void Close(double end);
  void CloseSilence(double now);
  void CloseUntil(double end);
  double BeginOf(double end) const;

  RequestTable& requests_;
  double first_gap_;
  std::deque<Open> open_;
  std::int64_t base_ = 0;  // The index of open_.front().
  std::vector<RequestIndex> active_;
  std::vector<First> firsts_;
  std::deque<EngineIteration> closed_;
  std::vector<double> wakes_;  // Arrivals at an empty engine, after last_end_.
  double last_end_ = 0;
  double now_ = 0;
  std::size_t in_flight_ = 0;
  double typical_duration_ = 0.02;
  double jitter_ = 0.0005;
  double event_iterations_ = 1;
};

}  // namespace zeus
