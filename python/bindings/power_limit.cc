#include "python/bindings/power_limit.h"

#include <fmt/format.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "python/bindings/closeable.h"
#include "python/bindings/collective.h"
#include "python/bindings/errors.h"
#include "zeus/optimizer/power_limit/slice_meter.h"

namespace zeus::python {
PythonSliceMeter::~PythonSliceMeter() {
  const py::gil_scoped_acquire acquired;
  object_ = {};
}

Status PythonSliceMeter::Begin(const std::string& label) {
  const py::gil_scoped_acquire acquired;
  const std::string window = SliceWindowName(label);
  try {
    object_.attr("begin")(window);
  } catch (const std::exception&) {
    return CaughtError("begin a window of the monitor");
  }
  open_ = window;
  return Ok();
}

Result<SliceReading> PythonSliceMeter::Peek() {
  return Error{ErrorCode::kNotSupported, "a window of this monitor tells nothing before its end"};
}

Result<SliceMeter::Ticket> PythonSliceMeter::End() {
  const py::gil_scoped_acquire acquired;
  try {
    const auto [time, energy] =
        object_.attr("end")(std::exchange(open_, {})).cast<std::pair<double, double>>();
    if (!(time > 0) || !(energy >= 0) || std::isinf(time) || std::isinf(energy))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the monitor says that a window took {} J and {} s", energy, time)};
    readings_.push_back({.time = Seconds(time), .energy = Joules(energy)});
  } catch (const std::exception&) {
    return CaughtError("end a window of the monitor");
  }
  return Ticket(readings_.size() - 1);
}

void PythonSliceMeter::Cancel() {
  if (open_.empty()) return;
  const py::gil_scoped_acquire acquired;
  try {
    object_.attr("cancel")(std::exchange(open_, {}));
  } catch (const std::exception&) {
    // The result of the window is not needed any more, so other exceptions are ignored.
    KeepInterrupt();
  }
}

Result<SliceReading> PythonSliceMeter::Read(Ticket ticket) {
  return readings_[static_cast<std::size_t>(ticket)];
}

// Members are destroyed in reverse order. Those that hold Python objects acquire the GIL
// themselves.
struct JitOptimizer::Work {
  std::shared_ptr<NodeMonitor> node;
  std::shared_ptr<Collective> collective;
  std::unique_ptr<PythonSliceMeter> meter;
  std::unique_ptr<GlobalPowerLimitOptimizer> optimizer;

  bool alone() const { return collective == nullptr || collective->size() == 1; }
};

// A call of the optimiser without the GIL. No other thread may use it meanwhile, but functions that
// it calls may query it.
class JitOptimizer::Turn {
 public:
  explicit Turn(JitOptimizer& jit) : jit_(jit), work_((static_cast<void>(jit.get()), jit.work_)) {
    if (jit_.owner_)
      throw Failure({ErrorCode::kConflict,
                     "the optimiser is in the middle of a call: a selector or a collective cannot "
                     "call it"});
    jit_.owner_ = std::this_thread::get_id();
    released_.emplace();
  }
  ~Turn() noexcept(false) {
    released_.reset();
    jit_.owner_.reset();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  GlobalPowerLimitOptimizer& operator*() { return *work_->optimizer; }
  GlobalPowerLimitOptimizer* operator->() { return work_->optimizer.get(); }

 private:
  JitOptimizer& jit_;
  const std::shared_ptr<Work> work_;
  std::optional<WithoutGil> released_;
};

JitOptimizer::JitOptimizer(Options options)
    : Closeable(options.monitor.get()), monitor_(std::move(options.monitor)) {
  auto work = std::make_shared<Work>();
  work->node = monitor_->recording();
  work->collective = FindCollective(options.collective);
  if (!options.meter.is_none()) work->meter = std::make_unique<PythonSliceMeter>(options.meter);
  options.jit.collective = work->collective.get();
  options.jit.meter = work->meter.get();
  // A full disk must not stop a training here either.
  options.jit.measured = [log = monitor_->log()](const Measurement& slice) {
    if (log) (void)log->Write(slice);
  };
  {
    const WithoutGil released;
    work->optimizer = std::make_unique<GlobalPowerLimitOptimizer>(
        *work->node, std::move(options.selector), std::move(options.jit));
  }
  work_ = std::move(work);
}

const GlobalPowerLimitOptimizer& JitOptimizer::get() const {
  CheckOpen("power limit optimiser");
  if (owner_ && *owner_ != std::this_thread::get_id())
    throw Failure({ErrorCode::kConflict,
                   "another thread is using the power limit optimiser: call it from one thread"});
  return *work_->optimizer;
}

void JitOptimizer::OnTrainBegin() { Turn(*this)->OnTrainBegin(); }

bool JitOptimizer::CountStep() {
  if (!work_ || owner_ || InForkedChild() || !work_->optimizer->done()) return false;
  work_->optimizer->OnStepBegin();
  return true;
}

void JitOptimizer::OnStepBegin() {
  static_cast<void>(get());
  if (CountStep()) return;
  // Steps are timed and slices end here, so the work of the framework must be finished.
  monitor_->synchronizer()();
  Turn(*this)->OnStepBegin();
}

void JitOptimizer::OnEpochEnd() {
  if (closed()) return;  // Nothing is left to end.
  if (get().done()) return;
  monitor_->synchronizer()();
  Turn(*this)->OnEpochEnd();
}

void JitOptimizer::OnTrainEnd() {
  if (closed()) return;
  static_cast<void>(get());
  monitor_->synchronizer()();
  Turn(*this)->OnTrainEnd();
}

JobUse JitOptimizer::Used() { return Unwrap(Turn(*this)->Used()); }

SavingsReport JitOptimizer::Savings(std::size_t knob) {
  const auto reports = Unwrap(Turn(*this)->Savings());
  if (knob >= reports.size())
    throw Failure({ErrorCode::kUnavailable, "nothing is decided on yet: train some more steps"});
  return reports[knob];
}

Profile JitOptimizer::KnobProfile(std::size_t knob) const {
  if (knob >= get().profile_count())
    throw Failure({ErrorCode::kNotFound, fmt::format("there is no profile of knob {}: {} so far",
                                                     knob, get().profile_count())});
  return get().profile(knob);
}

void JitOptimizer::DoClose() {
  // A thread that uses the optimiser keeps its parts alive until it leaves.
  auto work = std::exchange(work_, nullptr);
  if (!work) return;
  const bool idle = !owner_;
  const WithoutGil released;
  // Learned profiles are stored. With several ranks this is skipped, because it would wait for the
  // others.
  if (idle && work->alone()) work->optimizer->OnTrainEnd();
  work.reset();
}

void JitOptimizer::Abandon() {
  static auto* const abandoned = new std::vector<std::shared_ptr<Work>>();
  abandoned->push_back(std::move(work_));
}

// --- selectors ---

Selector MakeSelector(const std::string& objective, double parameter) {
  if (objective == "energy") return Energy();
  if (objective == "time") return Time();
  if (objective == "zeus_cost") return ZeusCost(parameter);
  if (objective == "max_slowdown") return MaxSlowdownConstraint(parameter);
  throw Failure({ErrorCode::kInvalidArgument, "there is no objective called " + objective});
}

Selector MakeSelector(const std::string& name, const py::function& choose) {
  // Copies of the selector are made and destroyed without the GIL.
  const std::shared_ptr<py::function> function(new py::function(choose), [](py::function* last) {
    const py::gil_scoped_acquire acquired;
    delete last;
  });
  return {.name = name, .select = [function, name](const Profile& profile) -> Result<std::size_t> {
            const py::gil_scoped_acquire acquired;
            try {
              const double chosen = (*function)(ListPoints(profile)).cast<double>();
              const auto point =
                  std::ranges::find(profile.points, chosen,
                                    [](const ProfilePoint& one) { return ToNumber(one.setting); });
              if (point != profile.points.end())
                return static_cast<std::size_t>(point - profile.points.begin());
              return Error{ErrorCode::kInvalidArgument,
                           fmt::format("{} returned {}, which was not measured: return one of the "
                                       "power_limit of its measurements",
                                       name, chosen)};
            } catch (const std::exception&) {
              Error error = CaughtError("ask the selector");
              error.code = ErrorCode::kInvalidArgument;
              return error;
            }
          }};
}

py::list ListPoints(const Profile& profile) {
  py::list points;
  for (const ProfilePoint& point : profile.points)
    points.append(py::make_tuple(ToNumber(point.setting), point.energy_per_step.value(),
                                 point.time_per_step.count(), point.energy_sigma.value(),
                                 point.time_sigma.count(), point.steps));
  return points;
}

}  // namespace zeus::python
