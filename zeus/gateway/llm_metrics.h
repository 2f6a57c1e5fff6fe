#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "zeus/base/units.h"
#include "zeus/gateway/energy_groups.h"
#include "zeus/gateway/request_record.h"
#include "zeus/metrics/metric.h"

namespace zeus::gateway {

// Sums and distributions over all requests, for Prometheus and for people. One owner.
class LlmMetrics {
 public:
  // The sums of one model at one upstream.
  struct Model {
    std::size_t upstream = 0;
    std::string upstream_name{};
    std::string name{};
    std::size_t running = 0;
    double requests = 0;
    std::map<std::string, double> by_status{};
    double prompt_tokens = 0;  // Those that were worked on.
    double cached_tokens = 0;
    double output_tokens = 0;
    // Energy of the requests whose energy is final, and what the counters show. Counters include
    // the requests in flight, and follow the requests' energy without ever going back.
    Joules prefill{};
    Joules decode{};
    Joules counted_prefill{};
    Joules counted_decode{};
    double final_output_tokens = 0;  // Those of the requests in prefill and decode.
    Histogram prefill_energy;
    Histogram decode_energy;
    Histogram token_energy;
    Histogram first_token;
    Histogram per_token;

    Model();
  };

  void Started(const RequestRecord& record);
  // The request has ended; its energy may still change.
  void Ended(const RequestRecord& record);
  // The request's energy is final.
  void Settled(const RequestRecord& record);
  // Divides what the engines' accounts grew by among their models, so that the sum of the counters
  // is the sum of the accounts at any time.
  void FollowAccounts(const EnergyGroups& energy);

  const std::vector<Model>& models() const { return models_; }
  void AddTo(MetricSet& set, const EnergyGroups& energy) const;

 private:
  // Models beyond this number are summed as "other": clients can make up names.
  static constexpr std::size_t kMostModels = 200;

  Model& Find(const RequestRecord& record);
  static std::string GpuNames(const EnergyGroups::Group& group, const EnergyGroups& energy);
  void Distribute(std::size_t upstream, Joules account, Joules Model::*settled,
                  Joules Model::*counted);

  std::vector<Model> models_{};
};

}  // namespace zeus::gateway
