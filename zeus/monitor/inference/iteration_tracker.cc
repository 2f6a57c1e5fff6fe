#include "zeus/monitor/inference/iteration_tracker.h"

#include <algorithm>
#include <cmath>

namespace zeus {
namespace {

constexpr double kSlowChange = 0.02;       // Weight of a new value in running averages.
constexpr double kLongestSilence = 2.0;    // Then time goes on without tokens, in seconds.
constexpr double kSilenceStep = 0.5;       // Length of the iterations that fill a silence.
constexpr double kOutOfStep = 0.06;        // A token this much later than its iteration...
constexpr double kOutOfStepDurations = 3;  // ...and by so many usual durations is out of step.
constexpr double kShortestPart = 0.5;      // No iteration is shorter than this part of the usual.
constexpr double kLagOfLongEvents = 0.35;  // The same where events hold several tokens.
constexpr double kShortestLag = 0.12;      // An iteration waits this long for its last tokens.

}  // namespace

void IterationTracker::set_event_iterations(double iterations) {
  typical_duration_ *= event_iterations_ / iterations;
  event_iterations_ = iterations;
}

void IterationTracker::Arrived(RequestIndex, double time) {
  if (in_flight_ == 0) {
    wakes_.push_back(std::max(time, last_end_));
  }
  ++in_flight_;
  now_ = std::max(now_, time);
}

void IterationTracker::TokenArrived(RequestIndex index, double time, double iterations) {
  now_ = std::max(now_, time);
  PlaceReadyFirsts(time);
  TrackedRequest& request = requests_[index];
  if (!request.aligned) {
    const auto waiting = std::find_if(firsts_.begin(), firsts_.end(),
                                      [&](const First& first) { return first.request == index; });
    if (waiting == firsts_.end()) {
      firsts_.push_back({index, time, iterations});
      PlaceReadyFirsts(time);
      return;
    }
    const First first = *waiting;
    firsts_.erase(waiting);
    PlaceFirst(first);
  }
  request.progress += iterations;
  Deliver(request, index, time);
}

IterationTracker::Open& IterationTracker::At(std::int64_t index) {
  while (last_index() < index) open_.emplace_back();
  return open_[static_cast<std::size_t>(index - base_)];
}

double IterationTracker::FirstGap() const {
  return std::clamp(typical_duration_ / 3, first_gap_ / 5, std::max(first_gap_, 2 * jitter_));
}

double IterationTracker::LongestLag() const {
  const double usual = 4 * event_iterations_ * typical_duration_ + 6 * jitter_;
  return std::max(event_iterations_ > 1.01 ? kLagOfLongEvents : kShortestLag, usual);
}

// The last iteration that ended at `time` or before, or base_ - 1. Where events hold several
// tokens, many iterations have no time of their own.
std::int64_t IterationTracker::IterationBefore(double time) const {
  for (std::int64_t index = last_index(); index >= base_; --index) {
    const Open& open = open_[static_cast<std::size_t>(index - base_)];
    if (!open.timed || open.end > time) continue;
    if (event_iterations_ < 1.01) return index;
    for (std::int64_t later = index + 1; later <= last_index(); ++later) {
      const Open& next = open_[static_cast<std::size_t>(later - base_)];
      if (!next.timed) continue;
      const double part = (time - open.end) / std::max(1e-6, next.end - open.end);
      return index +
             static_cast<std::int64_t>(std::round(part * static_cast<double>(later - index)));
    }
    return index;
  }
  return base_ - 1;
}

// The iteration to which a first token belongs: tokens are late, never early, and of several tokens
// the first is hardly late at all.
std::int64_t IterationTracker::NearestIteration(double time) const {
  const std::int64_t before = IterationBefore(time);
  if (event_iterations_ > 1.01) return before;
  std::int64_t after = std::max(before + 1, base_);
  while (after <= last_index() && !open_[static_cast<std::size_t>(after - base_)].timed) ++after;
  if (after > last_index()) return before;
  const Open& next = open_[static_cast<std::size_t>(after - base_)];
  const double since = before >= base_ && before <= last_index()
                           ? time - open_[static_cast<std::size_t>(before - base_)].end
                           : time - last_end_;
  const auto tokens = static_cast<double>(next.decode.size() + next.firsts.size());
  return (next.end - time) * std::max(1.0, tokens) < since ? after : before;
}

// A first token waits until the iteration after it has been seen: a token of another sequence that
// comes just after it shows that both belong together.
void IterationTracker::PlaceReadyFirsts(double now) {
  const bool long_events = event_iterations_ > 1.01;
  const double wait = long_events ? LongestLag() : std::max(2 * typical_duration_, 0.02);
  while (!firsts_.empty()) {
    const First first = firsts_.front();
    const Open* last = open_.empty() ? nullptr : &open_.back();
    const bool overtaken = last != nullptr && last->timed && last->end > first.time + FirstGap();
    if (!overtaken && !active_.empty() && now < first.time + wait) return;
    if (active_.empty() && now < first.time + FirstGap()) return;
    firsts_.erase(firsts_.begin());
    PlaceFirst(first);
  }
}

void IterationTracker::PlaceFirst(const First& first) {
  TrackedRequest& request = requests_[first.request];
  const double gap = FirstGap();
  // Further tokens of the same event were decoded in the iterations before.
  const auto behind =
      static_cast<std::int64_t>(std::max(0.0, std::ceil(first.iterations - 1e-6) - 1));
  std::int64_t index = NearestIteration(first.time);
  const bool found = index >= base_ && index <= last_index();
  const Open* near = found ? &open_[static_cast<std::size_t>(index - base_)] : nullptr;
  const double late = near != nullptr && near->timed ? first.time - near->end : 0;
  const bool alone = active_.empty() && late > gap;
  if (!found || alone || (index == last_index() && late > 0.8 * typical_duration_ + gap))
    index = std::max(last_index() + 1, base_) + behind;
  Open& open = At(index);
  if (!open.timed || first.time < open.end) {
    open.end = first.time;
    open.timed = true;
  }
  request.aligned = true;
  request.first_iteration = std::max(base_, index - behind);
  request.delivered = request.first_iteration;
  request.progress = static_cast<double>(index - request.first_iteration);
  At(request.first_iteration).firsts.push_back(first.request);
  for (std::int64_t k = request.first_iteration + 1; k <= index; ++k)
    At(k).decode.push_back({first.request, request.sequences, 0});
  request.delivered = index;
  if (!request.ended) active_.push_back(first.request);
}

// Puts a sequence back in step whose token is too late for the iteration where it should belong.
std::int64_t IterationTracker::InStep(TrackedRequest& request, std::int64_t index, double time) {
  const auto shift = [&](std::int64_t to) {
    request.first_iteration += to - index;
    return to;
  };
  if (index < base_) return shift(std::max(base_, IterationBefore(time)));
  const double limit = std::max({kOutOfStep, kOutOfStepDurations * typical_duration_, 8 * jitter_});
  if (index <= last_index()) {
    const Open& open = open_[static_cast<std::size_t>(index - base_)];
    if (open.timed && time - open.end > limit) {
      const std::int64_t later = IterationBefore(time);
      if (later > index) return shift(later);
    }
    return index;
  }
  // A sequence that runs ahead of all others, such as one with more tokens per iteration than it
  // has said, does not make new iterations in the middle of others.
  if (active_.size() > 1 && !open_.empty() && open_.back().timed && index == last_index() + 1 &&
      time - open_.back().end < 0.2 * typical_duration_ && event_iterations_ <= 1.01 &&
      request.delivered >= last_index())
    return shift(last_index());
  return index;
}

void IterationTracker::Deliver(TrackedRequest& request, RequestIndex place, double time) {
  std::int64_t index =
      request.first_iteration + static_cast<std::int64_t>(std::ceil(request.progress - 1e-6));
  index = InStep(request, index, time);
  const std::int64_t from = std::max(base_, std::min(request.delivered + 1, index));
  if (index > request.delivered)
    for (std::int64_t k = std::max(from, index - 64); k <= index; ++k)
      At(k).decode.push_back({place, request.sequences, 0});
  else if (index < base_)
    return;
  request.delivered = std::max(request.delivered, index);
  Open& open = At(index);
  if (!open.timed) {
    open.end = time;
    open.timed = true;
    return;
  }
  if (open.decode.size() + open.firsts.size() > 3)
    jitter_ += 0.2 * kSlowChange * (std::abs(time - open.end) - jitter_);
  open.end = std::min(open.end, time);
}

void IterationTracker::Ended(RequestIndex index, double time) {
  now_ = std::max(now_, time);
  const auto waiting = std::find_if(firsts_.begin(), firsts_.end(),
                                    [&](const First& first) { return first.request == index; });
  const TrackedRequest& request = requests_[index];
  const double tokens = request.counts.output.value_or(0) / request.sequences;
  if (waiting != firsts_.end()) {
    First first = *waiting;
    firsts_.erase(waiting);
    if (tokens >= 1) first.iterations = std::min(first.iterations, tokens);
    PlaceFirst(first);
  } else if (request.aligned && tokens >= 1 && event_iterations_ > 1.01) {
    TakeBack(index, static_cast<std::int64_t>(
                        std::round(request.tokens_seen / request.sequences - tokens)));
  }
  std::erase(active_, index);
  if (in_flight_ > 0) --in_flight_;
  if (requests_[index].aligned) return;
  // A response that came in one piece: its work is done now, at the latest.
  const bool worked = requests_[index].outcome == RequestOutcome::kCompleted;
  if (!open_.empty()) {
    if (worked) open_.back().firsts.push_back(index);
    return;
  }
  CloseUntil(time);
  if (worked && !closed_.empty()) closed_.back().firsts.push_back(index);
}

// The last event of a response held fewer tokens than was thought: the request took part in fewer
// iterations, and its last event shows the end of an earlier one.
void IterationTracker::TakeBack(RequestIndex index, std::int64_t iterations) {
  TrackedRequest& request = requests_[index];
  const std::int64_t last = request.delivered - iterations;
  if (iterations <= 0 || last < base_ || request.delivered > last_index()) return;
  for (std::int64_t k = last + 1; k <= request.delivered; ++k) {
    Open& open = open_[static_cast<std::size_t>(k - base_)];
    std::erase_if(open.decode, [&](const DecodePart& part) { return part.request == index; });
    if (open.timed && open.end == request.last_token) open.timed = false;
  }
  Open& open = open_[static_cast<std::size_t>(last - base_)];
  open.end = open.timed ? std::min(open.end, request.last_token) : request.last_token;
  open.timed = true;
  request.delivered = last;
  while (!open_.empty() && open_.back().decode.empty() && open_.back().firsts.empty())
    open_.pop_back();
}

bool IterationTracker::Complete(std::int64_t index) const {
  return std::all_of(active_.begin(), active_.end(),
                     [&](RequestIndex active) { return requests_[active].delivered >= index; });
}

// Gives the oldest open iteration an end, if it can be known. False: it has to wait. Between two
// known ends, iterations take their usual time, and those that finished prompts share the rest.
bool IterationTracker::FillTime(double now) {
  Open& open = open_.front();
  if (open.timed) return true;
  std::size_t finishing = open.firsts.empty() ? 0 : 1;
  for (std::size_t k = 1; k < open_.size(); ++k) {
    finishing += open_[k].firsts.empty() ? 0 : 1;
    if (!open_[k].timed) continue;
    const double begin = std::min(BeginOf(open_[k].end), open_[k].end);
    const double whole = open_[k].end - begin;
    const auto count = static_cast<double>(k + 1);
    const double rest = whole - count * typical_duration_;
    double length = whole / count;
    if (finishing > 0 && rest > 0)
      length =
          typical_duration_ + (open.firsts.empty() ? 0 : rest / static_cast<double>(finishing));
    open.end = begin + length;
    open.timed = true;
    return true;
  }
  return now > last_end_ + LongestLag() && active_.empty();
}

void IterationTracker::Advance(double time) {
  now_ = std::max(now_, time);
  PlaceReadyFirsts(time);
  while (!open_.empty()) {
    if (!FillTime(time)) break;
    const Open& open = open_.front();
    const bool first_may_join =
        !firsts_.empty() && (open_.size() < 2 || firsts_.front().time < open.end + FirstGap());
    const bool late = time > open.end + LongestLag();
    // Events with several tokens reach back, and a first event belongs to iterations before it.
    const bool reaches_back = event_iterations_ > 1.01 && in_flight_ > active_.size();
    if (!late && (first_may_join || reaches_back || !Complete(base_))) break;
    // No iteration is this short: a first token that comes within it belongs to this one.
    const double to_next = std::max(FirstGap(), kShortestPart * typical_duration_);
    if (!late && time < open.end + to_next) break;
    Close(open.end);
  }
  if (!open_.empty() || !firsts_.empty()) return;
  if (in_flight_ > 0) {
    CloseSilence(time);
  } else {
    last_end_ = std::max(last_end_, time);
    wakes_.clear();
  }
}

double IterationTracker::BeginOf(double end) const {
  double begin = last_end_;
  for (const double wake : wakes_)
    if (wake <= end && wake > begin) begin = wake;
  return begin;
}

void IterationTracker::Close(double end) {
  end = std::max(end, last_end_);
  EngineIteration iteration;
  iteration.begin = std::min(BeginOf(end), end);
  iteration.end = end;
  iteration.busy_from = iteration.begin;
  iteration.decode = std::move(open_.front().decode);
  iteration.firsts = std::move(open_.front().firsts);
  open_.pop_front();
  ++base_;
  last_end_ = end;
  std::erase_if(wakes_, [&](double wake) { return wake <= end; });
  if (iteration.firsts.empty() && !iteration.decode.empty() && in_flight_ <= active_.size())
    typical_duration_ +=
        kSlowChange * (std::min(end - iteration.begin, 3 * typical_duration_) - typical_duration_);
  for (DecodePart& part : iteration.decode) {
    TrackedRequest& request = requests_[part.request];
    part.context = request.context();
    request.decoded += part.tokens;
    request.last_touch = std::max(request.last_touch, end);
  }
  closed_.push_back(std::move(iteration));
}

// No token for a long time, though requests are in flight: time must go on for the others.
void IterationTracker::CloseSilence(double now) {
  if (now - BeginOf(now) >= kLongestSilence) CloseUntil(now - kLongestSilence + kSilenceStep);
}

void IterationTracker::CloseUntil(double end) {
  end = std::max(end, last_end_);
  EngineIteration iteration;
  iteration.begin = std::min(BeginOf(end), end);
  iteration.end = end;
  iteration.busy_from = iteration.begin;
  closed_.push_back(std::move(iteration));
  last_end_ = end;
  std::erase_if(wakes_, [&](double wake) { return wake <= end; });
}

double IterationTracker::frontier() const {
  if (open_.empty() && firsts_.empty() && in_flight_ == 0) return now_;
  // Between the last iteration and the arrival that woke the engine, nothing was done.
  const double next = open_.empty() ? now_ : open_.front().end;
  return open_.empty() || open_.front().timed ? std::max(last_end_, std::min(BeginOf(next), now_))
                                              : last_end_;
}

}  // namespace zeus
