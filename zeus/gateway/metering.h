#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/json_fwd.h"
#include "zeus/gateway/energy_groups.h"
#include "zeus/gateway/llm_metrics.h"
#include "zeus/gateway/proxy.h"
#include "zeus/gateway/request_observer.h"
#include "zeus/gateway/request_record.h"
#include "zeus/wire/llm/request.h"
#include "zeus/wire/llm/response_filter.h"

namespace zeus::gateway {

struct MeteringOptions {
  llm::Annotate annotate = llm::Annotate::kAll;
  bool store_text = false;
  bool spread_idle = false;  // Requests pay for the energy between requests, by output tokens.
  std::size_t kept_requests = 10'000;
  // Grams of CO2e of this energy over this time; nullopt: not known. Empty: not wanted.
  std::function<std::optional<double>(WallTime begin, WallTime end, Joules energy)> carbon{};
  // Called with a JSON line, without its end, for each request whose energy is final.
  std::function<void(const std::string& line)> log{};
  // Hears of every request; may be null. Must outlive the metering.
  RequestObserver* observer = nullptr;
};

// Follows the requests of language models through the proxy: their tokens, their energy, and the
// records, metrics and log lines that come of it. It runs on the proxy's thread. The clock and the
// monitor must outlive it.
class Metering {
 public:
  Metering(MeteringOptions options, EnergyMonitor* monitor, std::vector<UpstreamGpus> upstreams,
           const Clock& clock);
  ~Metering();
  Metering(const Metering&) = delete;
  Metering& operator=(const Metering&) = delete;

  // The gateway knows this about a request before it is passed on.
  struct Begin {
    std::size_t upstream = 0;
    llm::RequestFacts facts{};
    std::string key{};
    std::string client_id{};
    std::string body{};        // With --store-text only.
    bool usage_asked = false;  // The gateway asked for usage, the client did not.
  };
  struct Started {
    std::string id;  // For the header x-zeus-request.
    std::unique_ptr<Exchange> exchange;
  };
  Started Start(Begin begin);

  // Reads the sensors and closes the records whose energy is final. To be called often.
  void Step();
  // Closes all records of finished requests. Waits a little for the sensors to show their energy,
  // as long as a recorder runs.
  void CloseAll();

  void RunningRequestsSeen(std::size_t upstream, double running);

  const RecordStore& records() const { return records_; }
  const EnergyGroups& energy() const { return energy_; }
  const LlmMetrics& metrics() const { return metrics_; }
  bool stores_text() const { return options_.store_text; }
  // Energy and tokens of the models so far, with the learned laws: GET /zeus/models.
  Json ModelsJson() const;
  // Power, batch, tokens per second and joules per token of the last second: /zeus/live.
  Json LiveJson();
  void AddMetrics(MetricSet& set) const;

 private:
  class MeteredExchange;

  // The request has ended, and its outcome is in the record.
  void Finish(RequestRecord& record);
  void UpdateEnergy(RequestRecord& record);
  // The attribution has finished with the request.
  void Settle(RequestRecord& record, const RequestEnergy& energy);
  void UpdateCarbon(RequestRecord& record) const;
  bool WaitsForSensors();
  void Close(RequestRecord& record);
  void SpreadIdle(RequestRecord& record);
  Json GroupJson(const EnergyGroups::Group& group) const;
  static void AddLaw(const EnergyGroups::Group& group, EngineIndex engine, Json& entry);

  const MeteringOptions options_;
  EnergyMonitor* const monitor_;
  const Clock& clock_;
  const std::vector<std::string> upstream_names_;
  EnergyGroups energy_;
  RecordStore records_;
  LlmMetrics metrics_;
  std::size_t in_flight_ = 0;
  // Figures of the last second for LiveJson().
  struct Rate {
    TimePoint since{};
    double tokens = 0;
    double tokens_before = 0;
  };
  Rate rate_{};
  TimePoint next_check_{};
};

}  // namespace zeus::gateway
