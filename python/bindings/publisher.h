#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "python/bindings/closeable.h"
#include "python/bindings/metric_board.h"
#include "python/bindings/monitor.h"
#include "zeus/base/clock.h"
#include "zeus/base/ticker.h"
#include "zeus/export/push_gateway.h"

namespace zeus::python {

// The metrics of one job, and the native thread that keeps those of open windows fresh and pushes
// them to a gateway. Training neither waits for the gateway nor notices when it is down: that is
// said once, in the log.
class Publisher final : public Closeable {
 public:
  enum class Kind { kCounter, kGauge };

  // Without a URL nothing is pushed. Throws Failure.
  static std::shared_ptr<Publisher> Open(const PushTarget& target);
  ~Publisher() override { Close(); }

  // A window that is open from now on as `key` of that monitor.
  void Begin(Kind kind, const Monitor& monitor, const std::string& key, const std::string& window,
             Seconds period);
  // It was ended; null if it has no result.
  void End(Kind kind, const std::string& key, const std::string& window,
           const Measurement* measurement);
  void Observe(const std::string& window, const Measurement& measurement,
               const EnergyBuckets& buckets);

  // Whether the gateway has, within so many seconds, everything that is known now.
  bool Flush(double seconds);

  std::string Text() const;
  // Adds them with the labels job and instance, as a gateway would show them. Works from any
  // thread, and after the end of the publisher.
  using Source = std::function<void(MetricSet&)>;
  Source source() const {
    return [work = work_](MetricSet& metrics) { work->AddTo(metrics); };
  }

 private:
  // Everything that the thread uses.
  class Work {
   public:
    Work(PushTarget target, std::unique_ptr<PushGateway> gateway)
        : target_(std::move(target)), gateway_(std::move(gateway)) {}

    struct Window {
      Kind kind;
      std::shared_ptr<NodeMonitor> recording;
      std::string key;
      std::string name;
      Seconds period;
      TimePoint next;
    };
    void Begin(Window window);
    void End(Kind kind, const std::string& key, const std::string& window,
             const Measurement* measurement);

    TimePoint Step();
    // Pushes everything that there is to know, due or not.
    void Finish();
    void AddTo(MetricSet& metrics) const;
    bool UpToDate() const { return pushed_ >= board.version(); }
    bool pushes() const { return gateway_ != nullptr; }

    MetricBoard board;

   private:
    enum class Which { kDue, kAll };
    TimePoint UpdateOpenWindows(Which which);
    void Push();

    SystemClock clock_;
    const PushTarget target_;
    const std::unique_ptr<PushGateway> gateway_;  // Used by the thread.
    std::mutex mutex_;
    std::map<std::pair<Kind, std::string>, Window> open_;  // Guarded by mutex_. By key.
    std::atomic<std::size_t> pushed_ = 0;                  // A version of the board.
  };

  explicit Publisher(std::shared_ptr<Work> work);
  void DoClose() override;
  void Abandon() override;

  std::shared_ptr<Work> work_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace zeus::python
