#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/result.h"
#include "zeus/http/client.h"
#include "zeus/inference/benchmark/answer_reader.h"
#include "zeus/inference/benchmark/load_generator.h"
#include "zeus/inference/benchmark/summary.h"
#include "zeus/monitor/energy_monitor.h"

// Where a benchmark's joules come from: the sensors of the local GPUs, and the gateway's figures of
// single requests.
namespace zeus::inference {

// A local GPU, so that two reports can be told to be of the same one.
struct MeasuredGpu {
  std::string device;  // "gpu:0"
  std::string model;
  std::string uuid;
};

// The power of a GPU over time.
struct PowerCurve {
  std::string device;
  std::vector<std::pair<Seconds, Watts>> points;  // Times are after the begin of the window.
};

// Measures all devices of a monitor, which must outlive it. One owner.
class GpuMeter {
 public:
  explicit GpuMeter(EnergyMonitor& monitor) : monitor_(monitor) {}

  void Begin();
  // Waits up to two seconds for sensors to show the end of the window.
  Measurement End();

  // After End(), parts of the window.
  Measurement Between(const SteadyWindow& part) const;
  // The mean of the graphics clocks; nullopt where no GPU tells it.
  std::optional<Hertz> MeanClock(const SteadyWindow& part) const;
  std::vector<PowerCurve> Power(const SteadyWindow& part) const;

 private:
  EnergyMonitor& monitor_;
};

// Gives the final energy of a request, by the name that the gateway gave it.
class RequestEnergySource {
 public:
  virtual ~RequestEnergySource() = default;
  // nullopt when the server knows no such request or has no energy of it. kUnavailable when it does
  // not answer.
  virtual Result<std::optional<RequestEnergy>> Find(const std::string& request) = 0;
};

// Asks GET /zeus/requests/ID of a gateway.
class GatewayRequests final : public RequestEnergySource {
 public:
  // The client must outlive it.
  explicit GatewayRequests(http::Client& client) : client_(client) {}
  Result<std::optional<RequestEnergy>> Find(const std::string& request) override;

 private:
  http::Client& client_;
};

// Replaces the provisional energies of a record by the final ones as far as the source has them,
// and gives up after `timeout`, or soon when the source does not know the requests.
void FetchFinalEnergies(LoadRecord& record, RequestEnergySource& source, Clock& clock,
                        Seconds timeout);

// Asks /v1/models which model a server has. kInvalidArgument when there are several.
Result<std::string> FindOnlyModel(http::Client& client);

}  // namespace zeus::inference
