#include "examples/training/epoch_reporter.h"

#include <cerrno>
#include <fstream>

#include "zeus/base/file.h"
#include "zeus/base/json.h"

namespace zeus::examples {
namespace {

constexpr const char* kWindow = "report";

}  // namespace

Status EpochReporter::Begin() {
  if (file_.empty()) return Ok();
  ZEUS_TRY([[maybe_unused]] const WindowId window, monitor_.monitor().BeginWindow(kWindow));
  steady_ = optimizer_ == nullptr || optimizer_->done();
  return Ok();
}

Status EpochReporter::Epoch(const Learned& learned) {
  if (file_.empty()) return Ok();
  ZEUS_TRY(const Measurement measured, monitor_.monitor().PeekWindow(kWindow));
  const Joules energy = measured.Sum().energy;
  Json line{{"epoch", learned.epoch},
            {"metric", learned.metric},
            {"time_seconds", measured.time.count()},
            {"energy_joules", energy.value()}};
  ZEUS_TRY(const PowerLimit limit, monitor_.gpu(0)->CurrentPowerLimit());
  line["power_limit_watts"] = limit.requested.value();
  if (steady_) {
    line["epoch_time_seconds"] = (measured.time - time_).count();
    line["epoch_energy_joules"] = (energy - energy_).value();
  }
  steady_ = optimizer_ == nullptr || optimizer_->done();
  time_ = measured.time;
  energy_ = energy;
  std::ofstream file(file_, std::ios::app);
  file << JsonText(line) << std::endl;
  return file ? Ok() : Status(FileError(file_, EIO));
}

}  // namespace zeus::examples
