#include "python/bindings/training.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "python/bindings/interrupts.h"
#include "python/bindings/without_gil.h"

namespace zeus::python {

PythonCallback::~PythonCallback() {
  const py::gil_scoped_acquire acquired;
  object_ = {};
}

template <class... Arguments>
void PythonCallback::Tell(const char* event, Arguments... arguments) {
  const py::gil_scoped_acquire acquired;
  std::string failure;
  try {
    if (py::hasattr(object_, event)) object_.attr(event)(arguments...);
    return;
  } catch (const std::exception& exception) {
    failure = exception.what();
    KeepInterrupt();
  }
  // Not the exception itself, which nobody may look at without the GIL.
  throw std::runtime_error(failure);
}

// Its members end in reverse order.
struct Training::Work {
  std::shared_ptr<NodeMonitor> node;
  std::shared_ptr<Collective> collective;
  std::vector<std::unique_ptr<PythonCallback>> callbacks;
  std::unique_ptr<TrainingLoop> loop;
};

Training::Training(std::shared_ptr<Monitor> monitor, TrainingOptions options,
                   const py::list& callbacks, const py::object& collective)
    : Closeable(monitor.get()), monitor_(std::move(monitor)), work_(std::make_shared<Work>()) {
  work_->node = monitor_->recording();
  work_->collective = CollectiveOf(collective);
  options.collective = work_->collective.get();
  for (const py::handle callback : callbacks) {
    work_->callbacks.push_back(
        std::make_unique<PythonCallback>(py::reinterpret_borrow<py::object>(callback)));
    options.callbacks.push_back(work_->callbacks.back().get());
  }
  work_->loop = std::make_unique<TrainingLoop>(*work_->node, std::move(options));
}

TrainingLoop& Training::loop() const {
  CheckOpen("data loader");
  return *work_->loop;
}

bool Training::BeginTraining() {
  TrainingLoop& loop = this->loop();
  const auto work = work_;
  const WithoutGil released;
  return loop.BeginTraining();
}

bool Training::NextEpoch() {
  TrainingLoop& loop = this->loop();
  monitor_->synchronizer()();
  const auto work = work_;
  const WithoutGil released;
  return loop.NextEpoch();
}

void Training::LeaveTraining(bool by_exception) {
  TrainingLoop& loop = this->loop();
  const auto work = work_;
  const WithoutGil released;
  loop.LeaveTraining(by_exception);
}

TrainingSummary Training::Summary(double patience) {
  TrainingLoop& loop = this->loop();
  const auto work = work_;
  const WithoutGil released;
  return loop.Summary(Seconds(patience));
}

void Training::DoClose() {
  auto work = std::exchange(work_, nullptr);
  const WithoutGil released;
  work.reset();
}

void Training::Abandon() {
  static auto* const abandoned = new std::vector<std::shared_ptr<Work>>();
  abandoned->push_back(std::move(work_));
}

}  // namespace zeus::python
