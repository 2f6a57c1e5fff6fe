#include <utility>

#include "zeus/monitor/energy_monitor.h"

namespace zeus {

ScopedWindow::ScopedWindow(EnergyMonitor& monitor, std::string name, Sink sink,
                           const WindowOptions& options)
    : monitor_(monitor), name_(std::move(name)), sink_(std::move(sink)), status_(Ok()) {
  const Result<WindowId> begun = monitor_.BeginWindow(name_, options);
  open_ = begun.ok();
  if (!open_) status_ = begun.error();
}

ScopedWindow::~ScopedWindow() {
  if (open_) (void)End();
}

Result<Measurement> ScopedWindow::End() {
  if (!std::exchange(open_, false))
    return Error{ErrorCode::kNotFound, "window \"" + name_ + "\" is not open any more"};
  Result<Measurement> result = monitor_.EndWindow(name_);
  if (result.ok() && sink_) sink_(result.value());
  return result;
}

}  // namespace zeus
