#include "zeus/optimizer/shift/pause_planner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "zeus/base/wall_time_text.h"

namespace zeus {
namespace {

using std::chrono::microseconds;

// Bounds the grid: a day in steps of about a minute.
constexpr std::size_t kMostSlots = 1440;
constexpr Seconds kShortestSlot = std::chrono::minutes(1);
// As kSureGain. More are needed, since the best of very many choices of hours is taken.
constexpr double kSurePauses = 2.5;

// The dynamic programme. Costs are integrals of the signal, in value-seconds: the power is the same
// everywhere.
class Programme {
 public:
  Programme(const Signal& signal, const PauseRequest& request) : request_(request) {
    const Seconds span = request.finish_by - request.now;
    const Seconds shortest = std::max(kShortestSlot, span / double(kMostSlots));
    const Seconds work = request.left.mean();
    blocks_ = static_cast<std::size_t>(
        std::max(1.0, std::floor(work / std::max(request.block, shortest))));
    block_ = work / static_cast<double>(blocks_);
    slots_per_block_ = static_cast<std::size_t>(std::max(1.0, std::floor(block_ / shortest)));
    slot_ = block_ / static_cast<double>(slots_per_block_);
    // More time than the work takes is kept free at the end, for a run that takes longer.
    const Seconds reserve = request.left.longest() - work + request.margin;
    const double room = (span - reserve) / slot_;
    slots_ = room > 0 ? static_cast<std::size_t>(std::floor(room + 1e-6)) : 0;
    resume_ = request.resume / slot_;
    integral_.resize(slots_ + 1);
    for (std::size_t i = 0; i <= slots_; ++i)
      integral_[i] = signal.Integral(request.now, TimeOf(double(i)));
    resume_cost_.resize(slots_ + 1);
    for (std::size_t i = 0; i <= slots_; ++i)
      resume_cost_[i] = signal.Integral(TimeOf(double(i)), TimeOf(double(i) + resume_));
  }

  // Whether there is room for a pause at all.
  bool HasRoom() const { return slots_ > blocks_ * slots_per_block_; }

  std::vector<PausePlan::Span> Solve() {
    pause_.assign((blocks_ + 1) * (slots_ + 1), 0);
    idle_.assign((blocks_ + 1) * (slots_ + 1), 0);
    std::vector<double> running_less(slots_ + 1, 0.0);  // One block fewer is left.
    std::vector<double> running(slots_ + 1);
    std::vector<double> idle(slots_ + 1);
    for (std::size_t left = 1; left <= blocks_; ++left) {
      for (std::size_t i = slots_ + 1; i-- > 0;) {
        const double later = i < slots_ ? idle[i + 1] : HUGE_VAL;
        const double work = Work(i, left, 0, running_less);
        const double resumed =
            Work(i, left, resume_, running_less) + (IsResume(left) ? resume_cost_[i] : 0);
        idle_[Place(left, i)] = later < resumed ? 1 : 0;
        idle[i] = std::min(later, resumed);
        pause_[Place(left, i)] = idle[i] < work ? 1 : 0;
        running[i] = std::min(work, idle[i]);
      }
      std::swap(running_less, running);
    }
    return Follow();
  }

 private:
  WallTime TimeOf(double slot) const { return Later(request_.now, slot * slot_); }
  std::size_t Place(std::size_t left, std::size_t slot) const { return left * (slots_ + 1) + slot; }
  // The first start of a run that has not begun costs nothing.
  bool IsResume(std::size_t left) const { return request_.begun || left < blocks_; }

  // The cost of doing the next block from slot i on; not possible when the rest would end too late.
  double Work(std::size_t i, std::size_t left, double resume,
              const std::vector<double>& running_less) const {
    const double end = double(i) + double(left * slots_per_block_) + (IsResume(left) ? resume : 0);
    if (end > double(slots_) + 1e-6) return HUGE_VAL;
    const std::size_t next = i + slots_per_block_;
    return integral_[next] - integral_[i] + running_less[next];
  }

  std::vector<PausePlan::Span> Follow() const {
    std::vector<PausePlan::Span> spans;
    bool running = request_.running;
    std::size_t left = blocks_;
    std::size_t i = 0;
    while (left > 0 && i <= slots_) {
      if (running && pause_[Place(left, i)] != 0) running = false;
      if (!running && idle_[Place(left, i)] != 0) {
        ++i;
        continue;
      }
      // A resume makes the span longer by what it costs.
      const bool resumes = !running && IsResume(left);
      const std::size_t next = i + slots_per_block_;
      const WallTime until = TimeOf(double(next) + (resumes ? resume_ : 0));
      if (running && !spans.empty()) {
        spans.back().until += std::chrono::duration_cast<microseconds>(block_);
      } else {
        spans.push_back({TimeOf(double(i)), until});
      }
      running = true;
      --left;
      i = next;
    }
    return spans;
  }

  const PauseRequest& request_;
  std::size_t blocks_ = 1;
  std::size_t slots_per_block_ = 1;
  std::size_t slots_ = 0;  // The grid has slots_ + 1 moments.
  Seconds block_{};
  Seconds slot_{};
  double resume_ = 0;             // In slots.
  std::vector<double> integral_;  // From now until each moment.
  std::vector<double> resume_cost_;
  std::vector<std::uint8_t> pause_;  // Decisions by blocks left and moment.
  std::vector<std::uint8_t> idle_;
};

std::vector<PowerPiece> PiecesOf(const std::vector<PausePlan::Span>& spans, Watts power) {
  std::vector<PowerPiece> pieces;
  for (const PausePlan::Span& span : spans)
    pieces.push_back({.from = span.from, .until = span.until, .power = power});
  return pieces;
}

}  // namespace

bool PausePlan::WorksAt(WallTime time) const { return NextWorkFrom(time) == time; }

WallTime PausePlan::NextWorkFrom(WallTime time) const {
  for (const Span& span : spans) {
    if (time < span.from) return span.from;
    if (time < span.until) return time;
  }
  return time;
}

Result<PausePlan> PlanPauses(Signal signal, const PauseRequest& request) {
  const ShiftRequest through{.now = request.now,
                             .duration = request.left,
                             .power = {{.share = 1, .power = request.power}},
                             .finish_by = request.finish_by,
                             .latest_start = request.now,
                             .margin = request.margin};
  if (!(request.block > Seconds(0)) || !(request.resume >= Seconds(0)))
    return InvalidArgument("a block of work takes more than no time, and a resume not less");
  if (request.finish_by == WallTime::max())
    return InvalidArgument("pauses need a time by which the run is to be over");
  // The plan of one piece has the cost of running through, and checks the request.
  ZEUS_TRY(const StartPlan now, PlanStart(signal, through));
  signal.ExtendTo(std::max(request.finish_by, Later(request.now, request.left.longest())));
  PausePlan plan;
  const std::vector<PausePlan::Span> at_once{
      {request.now, Later(request.now, request.left.mean())}};
  plan.spans = at_once;
  plan.meets_deadline =
      Later(request.now, request.left.longest() + request.margin) <= request.finish_by;
  plan.expected = {.cost = now.expected.cost_now, .cost_now = now.expected.cost_now};
  Programme programme(signal, request);
  if (!programme.HasRoom()) {
    plan.reason = ShiftReason::kNoTime;
    return plan;
  }
  std::vector<PausePlan::Span> spans = programme.Solve();
  const std::vector<PowerPiece> with_pauses = PiecesOf(spans, request.power);
  const std::vector<PowerPiece> without = PiecesOf(at_once, request.power);
  plan.expected.cost = signal.Cost(with_pauses);
  plan.expected.gain_sigma = signal.SigmaOfDifference(without, with_pauses);
  const double gain = plan.expected.gain();
  if (!(gain >= request.least_gain * std::abs(plan.expected.cost_now)) || !(gain > 0)) {
    plan.reason = ShiftReason::kNothingToGain;
    return plan;
  }
  if (gain <= kSurePauses * plan.expected.gain_sigma) {
    plan.reason = ShiftReason::kUnsure;
    return plan;
  }
  plan.reason = ShiftReason::kGain;
  plan.assumed = spans.back().until > signal.known_until();
  plan.spans = std::move(spans);
  return plan;
}

}  // namespace zeus
