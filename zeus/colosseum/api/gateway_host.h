#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/colosseum/model_host.h"
#include "zeus/http/client.h"
#include "zeus/http/worker_pool.h"

namespace zeus::colosseum {

struct GatewayHostOptions {
  http::ClientOptions gateway{};  // Its URL, authorities and token.
  int answers_at_once = 64;
  Seconds idle_time{120};  // The longest silence within an answer.
  // The longest wait for the final figure of an energy, once the answer is complete.
  Seconds energy_time{2};
};

// Power of groups of GPUs while somebody is interested, as the gateway's /zeus/live tells it once a
// second. Thread-safe.
class PowerFeed {
 public:
  PowerFeed(http::ClientOptions gateway, const Clock& clock);
  ~PowerFeed();
  PowerFeed(const PowerFeed&) = delete;
  PowerFeed& operator=(const PowerFeed&) = delete;

  // The number of answers that arrive: with none the feed rests.
  void Begin();
  void End();
  // Samples of the GPUs of an upstream since a moment, relative to it.
  std::vector<PowerSample> Since(TimePoint begin, const std::string& upstream) const;

 private:
  struct Sample {
    TimePoint at{};
    Watts power{};
  };

  TimePoint Follow();
  bool Accept(std::string_view bytes, std::string& line);
  void ReadEvent(std::string_view json);

  const http::ClientOptions gateway_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the mutable state.
  int interested_ = 0;
  bool stopping_ = false;
  std::map<std::string, std::vector<Sample>> samples_{};  // By upstream.
  std::shared_ptr<http::Client> client_{};                // The running call's.
  Ticker ticker_;                                         // The last member: it uses all others.
};

// The models behind a gateway (`zeus llm gateway`). Each answer takes a thread while it arrives.
// Thread-safe; the clock must outlive it.
class GatewayHost final : public ModelHost {
 public:
  // Does not connect yet. kInvalidArgument for a malformed URL.
  static Result<std::unique_ptr<GatewayHost>> Create(const GatewayHostOptions& options,
                                                     Clock& clock);
  ~GatewayHost() override;  // Ends all answers.

  Result<std::vector<std::string>> Models() override;
  AnswerId Ask(Question question, std::shared_ptr<AnswerListener> listener) override;
  void Abort(AnswerId answer) override;

 private:
  struct Running {
    bool aborted = false;
    std::shared_ptr<http::Client> client{};  // Null before the call.
  };

  GatewayHost(const GatewayHostOptions& options, std::unique_ptr<http::Client> models,
              Clock& clock);
  Result<std::vector<std::string>> AskModels();
  Result<Contestant> Answer(AnswerId id, const Question& question, AnswerListener& listener);
  void WaitForEnergy(AnswerId id, http::Client& client, TimePoint begin, Contestant& answer);
  bool IsAborted(AnswerId id) const;

  const GatewayHostOptions options_;
  const std::unique_ptr<http::Client> models_client_;
  Clock& clock_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, to the end of the mutable state.
  AnswerId next_ = 1;
  std::map<AnswerId, Running> running_{};
  bool asks_models_ = false;  // A call asks the gateway.
  std::condition_variable models_known_{};
  Result<std::vector<std::string>> models_{std::vector<std::string>()};
  std::optional<TimePoint> models_at_{};  // nullopt: the gateway was not asked yet.
  PowerFeed power_;
  http::WorkerPool workers_;  // The last member: its threads use all others.
};

}  // namespace zeus::colosseum
