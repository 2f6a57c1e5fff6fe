#include "python/bindings/publisher.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "python/bindings/errors.h"
#include "python/bindings/waiting.h"
#include "python/bindings/without_gil.h"

namespace zeus::python {
namespace {

using namespace std::chrono_literals;

constexpr Seconds kBeforeNextAttempt = 5s;  // Where a gateway failed.

}  // namespace

void Publisher::Work::Begin(Window window) {
  const std::lock_guard lock(mutex_);
  window.next = clock_.Now();
  std::pair key(window.kind, window.key);
  open_.insert_or_assign(std::move(key), std::move(window));
}

void Publisher::Work::End(Kind kind, const std::string& key, const std::string& window,
                          const Measurement* measurement) {
  // Under the lock: the thread must not add what it saw before to what is added here.
  const std::lock_guard lock(mutex_);
  open_.erase({kind, key});
  if (measurement != nullptr && kind == Kind::kCounter) board.Finish(window, *measurement);
}

TimePoint Publisher::Work::UpdateOpenWindows(Which which) {
  const std::lock_guard lock(mutex_);
  const TimePoint now = clock_.Now();
  TimePoint next = Ticker::kWhenWoken;
  for (auto& [_, window] : open_) {
    if (window.next <= now || which == Which::kAll) {
      const EnergyMonitor& monitor = window.recording->monitor();
      if (window.kind == Kind::kGauge) {
        board.ShowPower(window.name, monitor);
      } else if (const auto so_far = monitor.PeekWindow(window.key); so_far.ok()) {
        board.Update(window.name, so_far.value());
      }
      window.next = now + window.period;
    }
    next = std::min(next, window.next);
  }
  return next;
}

void Publisher::Work::Push() {
  const std::size_t version = board.version();
  if (gateway_ == nullptr || version == pushed_) return;
  MetricSet metrics;
  board.AddTo(metrics, {});
  gateway_->TryPush(metrics.Text());
  if (gateway_->working()) pushed_ = version;
}

TimePoint Publisher::Work::Step() {
  const TimePoint next = UpdateOpenWindows(Which::kDue);
  Push();
  const bool failed = gateway_ != nullptr && !gateway_->working();
  return failed ? std::min(next, clock_.Now() + kBeforeNextAttempt) : next;
}

void Publisher::Work::Finish() {
  UpdateOpenWindows(Which::kAll);
  Push();
}

void Publisher::Work::AddTo(MetricSet& metrics) const {
  board.AddTo(metrics, {{"job", target_.job}, {"instance", target_.instance}});
}

Publisher::Publisher(std::shared_ptr<Work> work) : work_(std::move(work)) {}

std::shared_ptr<Publisher> Publisher::Open(const PushTarget& target) {
  std::unique_ptr<PushGateway> gateway;
  if (!target.url.empty()) gateway = Unwrap(PushGateway::Create(target));
  std::shared_ptr<Publisher> publisher(
      new Publisher(std::make_shared<Work>(target, std::move(gateway))));
  publisher->ticker_ = std::make_unique<Ticker>(
      "zeus-metrics", [work = publisher->work_.get()] { return work->Step(); });
  return publisher;
}

void Publisher::Begin(Kind kind, const Monitor& monitor, const std::string& key,
                      const std::string& window, Seconds period) {
  CheckOpen("metric");
  work_->Begin({.kind = kind,
                .recording = monitor.recording(),
                .key = key,
                .name = window,
                .period = period,
                .next = {}});
  ticker_->Wake();
}

void Publisher::End(Kind kind, const std::string& key, const std::string& window,
                    const Measurement* measurement) {
  CheckOpen("metric");
  {
    const WithoutGil released;
    work_->End(kind, key, window, measurement);
  }
  ticker_->Wake();
}

void Publisher::Observe(const std::string& window, const Measurement& measurement,
                        const EnergyBuckets& buckets) {
  CheckOpen("metric");
  work_->board.Observe(window, measurement, buckets);
  ticker_->Wake();
}

bool Publisher::Flush(double seconds) {
  CheckOpen("metric");
  const std::shared_ptr<Work> work = work_;
  if (!work->pushes()) return true;
  ticker_->Wake();
  return WaitUntil([work] { return work->UpToDate(); }, seconds);
}

std::string Publisher::Text() const {
  CheckOpen("metric");
  MetricSet metrics;
  work_->board.AddTo(metrics, {});
  return metrics.Text();
}

void Publisher::DoClose() {
  auto ticker = std::move(ticker_);
  const std::shared_ptr<Work> work = work_;
  const WithoutGil released;
  ticker.reset();
  work->Finish();
}

void Publisher::Abandon() {
  // Neither its thread nor, perhaps, the holder of its locks exists here.
  static auto* const abandoned = new std::vector<std::shared_ptr<Work>>();
  abandoned->push_back(work_);
  (void)ticker_.release();
}

}  // namespace zeus::python
