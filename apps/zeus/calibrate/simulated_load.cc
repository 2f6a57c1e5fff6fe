#include "apps/zeus/calibrate/simulated_load.h"

#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>

#include "zeus/device/sim/node_directory.h"

namespace zeus::cli {
namespace {

using calibration::LoadState;

// Share of the power limit: it gives as much contrast as possible without reaching the limit, which
// would distort the step.
constexpr double kShareOfLimit = 0.7;
// The node ends the load if this process dies. Longer than any stretch of the square wave.
constexpr Seconds kHeartbeatTimeout(10);

class SimulatedLoad final : public SwitchedLoad {
 public:
  SimulatedLoad(sim::SharedNode node, unsigned index, Watts demand)
      : node_(std::move(node)), index_(index) {
    spec_.demand = demand;
    spec_.pid = ::getpid();
    spec_.heartbeat_timeout = kHeartbeatTimeout * node_.time_scale();
  }
  ~SimulatedLoad() override {
    // An error is ignored: a node that was stopped meanwhile has no load either.
    static_cast<void>(Switch(LoadState::kIdle));
  }

  Status Switch(LoadState state) override {
    return node_.Update(index_, [&](sim::GpuCore& core) -> Status {
      if (id_) core.DetachLoad(*id_);
      id_.reset();
      if (state == LoadState::kIdle) return Ok();
      ZEUS_TRY(id_, core.AttachLoad(spec_));
      return Ok();
    });
  }

 private:
  sim::SharedNode node_;
  const unsigned index_;
  sim::LoadSpec spec_;
  std::optional<std::uint32_t> id_;
};

std::optional<unsigned> IndexOf(const sim::SharedNode& node, const std::string& uuid) {
  for (unsigned i = 0; i < node.gpu_count(); ++i) {
    const auto view = node.Read(i, node.Now());
    if (view.ok() && view.value().core.uuid() == uuid) return i;
  }
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<SwitchedLoad>> OpenSimulatedLoad(Clock& clock, Gpu& gpu) {
  const std::string name = sim::ChosenNodeName();
  const auto directory = sim::NodeDirectory::FromEnvironment(clock);
  if (!directory.ok()) return std::unique_ptr<SwitchedLoad>();
  const auto readable = directory.value().Open(name, sim::Access::kRead);
  if (!readable.ok()) return std::unique_ptr<SwitchedLoad>();
  const auto index = IndexOf(readable.value(), gpu.identity().uuid);
  if (!index) return std::unique_ptr<SwitchedLoad>();
  ZEUS_TRY(sim::SharedNode node, directory.value().Open(name, sim::Access::kWrite));
  ZEUS_TRY(const PowerLimit limit, gpu.CurrentPowerLimit());
  return std::unique_ptr<SwitchedLoad>(
      std::make_unique<SimulatedLoad>(std::move(node), *index, limit.enforced * kShareOfLimit));
}

}  // namespace zeus::cli
