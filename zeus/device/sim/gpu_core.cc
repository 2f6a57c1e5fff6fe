// Time passes in regimes: stretches between two events in which demand, limit and clock are
// constant, so power follows a known function of time (a thermal exponential, a periodic step of
// training) and energy is its integral in closed form. AdvanceTo() goes from event to event: a knob
// takes effect, a load ends, a temperature crosses a threshold, a fault begins. Sensors are
// computed from the regimes when they are read: a counter from the energy at its last update, a
// power reading from the mean over its window.
#include "zeus/device/sim/gpu_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>

#include "zeus/device/sim/gpu_model.h"

namespace zeus::sim {
namespace {

constexpr Seconds kNever{std::numeric_limits<double>::infinity()};

// Stored instead of a pointer, which would mean nothing in another process.
std::uint32_t ModelIndex(const GpuModel& model) {
  const auto models = GpuModels();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const GpuModel& known) { return known.id == model.id; });
  assert(found != models.end());
  return static_cast<std::uint32_t>(found - models.begin());
}

Random MakeStream(std::uint64_t seed, unsigned index, const char* purpose) {
  return Random(seed).Fork(fmt::format("gpu {} {}", index, purpose));
}

}  // namespace

GpuCore::GpuCore(const GpuModel& model, std::uint64_t seed, unsigned index)
    : model_index_(ModelIndex(model)),
      index_(index),
      seed_(seed),
      knob_random_(MakeStream(seed, index, "knobs")),
      fault_random_(MakeStream(seed, index, "faults")),
      board_(BoardSensors::Draw(model.sensors, MakeStream(seed, index, "sensors"))),
      ambient_(model.thermal.ambient),
      limit_(model.default_limit),
      history_(model.idle_power) {
  // It has been idle for long.
  const double rise = model.thermal.kelvin_per_watt * model.idle_power.value();
  BeginRegime(ambient_ + Celsius(rise), 0.0);
}

const GpuModel& GpuCore::model() const { return GpuModels()[model_index_]; }

std::vector<std::size_t> GpuCore::PartOffsets() {
  static_assert(std::is_standard_layout_v<GpuCore>);
  return {offsetof(GpuCore, model_index_),   offsetof(GpuCore, index_),
          offsetof(GpuCore, seed_),          offsetof(GpuCore, knob_random_),
          offsetof(GpuCore, fault_random_),  offsetof(GpuCore, board_),
          offsetof(GpuCore, now_),           offsetof(GpuCore, next_event_),
          offsetof(GpuCore, cooling_event_), offsetof(GpuCore, ambient_),
          offsetof(GpuCore, cooling_),       offsetof(GpuCore, persistence_),
          offsetof(GpuCore, knob_latency_),  offsetof(GpuCore, limit_),
          offsetof(GpuCore, graphics_lock_), offsetof(GpuCore, loads_),
          offsetof(GpuCore, faults_),        offsetof(GpuCore, state_),
          offsetof(GpuCore, regime_),        offsetof(GpuCore, lead_),
          offsetof(GpuCore, energy_),        offsetof(GpuCore, history_),
          offsetof(GpuCore, slow_time_),     offsetof(GpuCore, slow_by_),
          offsetof(GpuCore, counter_)};
}

std::string GpuCore::uuid() const {
  Random random = MakeStream(seed_, index_, "uuid");
  const std::uint64_t high = random.NextBits();
  const std::uint64_t low = random.NextBits();
  return fmt::format("GPU-{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, (high >> 16) & 0xffff,
                     high & 0xffff, low >> 48, low & 0xffffffffffff);
}

std::string GpuCore::pci_address() const {
  return fmt::format("0000:{:02x}:00.0", (index_ + 1) & 0xff);
}

void GpuCore::AdvanceTo(Seconds time) {
  while (next_event_ <= time) {
    now_ = std::max(now_, next_event_);
    ApplyEvents();
  }
  now_ = std::max(now_, time);
}

void GpuCore::ApplyEvents() {
  UpdateCounter(counter_);
  if (now_ >= cooling_event_)
    cooling_ = cooling_ == Cooling::kEnough ? Cooling::kSlowedDown : Cooling::kEnough;
  limit_.ApplyDue(now_);
  graphics_lock_.ApplyDue(now_);
  loads_.RemoveEnded(now_);
  if (faults_.TakeDue(FaultKind::kClockReset, now_)) graphics_lock_.Force(std::nullopt);
  if (faults_.TakeDue(FaultKind::kDriverReload, now_)) ReloadDriver();
  if (fault(FaultKind::kCounterFrozen)) counter_.Freeze();
  ChangeRegime();
}

// A reload clears the settings of programs, which live in the driver; loads and the exact energy go
// on.
void GpuCore::ReloadDriver() {
  counter_.Restart();
  limit_.Force(model().default_limit);
  graphics_lock_.Force(std::nullopt);
  persistence_ = kPersistenceAtStart;
}

void GpuCore::ChangeRegime() {
  const Celsius temperature = this->temperature();
  const double position = regime_.profile.PositionAt(now_ - regime_.start);
  EndRegime();
  BeginRegime(temperature, position);
}

void GpuCore::EndRegime() {
  if (now_ <= regime_.start) return;
  UpdateCounter(counter_);
  const Joules energy = regime_.EnergyUntil(now_);
  energy_.Add(energy);
  history_.Push(regime_, now_);
  AddSlowTime(slow_time_);
  loads_.CountSteps(now_ - regime_.start, energy);
}

void GpuCore::BeginRegime(Celsius temperature, double step_position) {
  const GpuModel& model = this->model();
  const Watts limit = PhysicalLimit();
  state_ = Operate(
      model, loads_,
      {.power_limit = limit, .locked_clock = graphics_lock_.effective(), .cooling = cooling_});
  loads_.ForeseeEndOfWork(now_);

  // A change of knobs does not start the step again.
  const Load* lead = loads_.first_workload();
  const std::uint32_t lead_id = lead != nullptr ? lead->id : 0;
  state_.profile.phase = lead_id == lead_ ? step_position : 0.0;
  lead_ = lead_id;

  const Watts mean = state_.profile.mean();
  ThermalPath path = Heat(model.thermal, ambient_, temperature, mean, Leakage::kFollowsTemperature);
  const Watts most = mean + Watts(path.leakage_watts_per_kelvin *
                                  (std::max(path.start, path.settled) - path.reference).value());
  if (state_.at_limit || (most > limit && !loads_.none_works()))
    path = Heat(model.thermal, ambient_, temperature, mean, Leakage::kInsideLimit);

  regime_ = {.start = now_, .profile = state_.profile, .thermal = path};
  slow_by_ = throttle();
  ScheduleNextEvent();
}

void GpuCore::ScheduleNextEvent() {
  const ThermalSpec& thermal = model().thermal;
  const auto turn = cooling_ == Cooling::kEnough ? regime_.thermal.TimeToRise(thermal.slowdown)
                                                 : regime_.thermal.TimeToFall(thermal.release);
  cooling_event_ = turn ? regime_.start + *turn : kNever;
  next_event_ = std::min({cooling_event_, limit_.next_arrival(), graphics_lock_.next_arrival(),
                          loads_.next_end(), faults_.NextAfter(now_)});
}

void GpuCore::SetAmbient(Celsius ambient) {
  ambient_ = ambient;
  ChangeRegime();
}

Watts GpuCore::PhysicalLimit() const {
  const auto cap = fault(FaultKind::kOutOfBandCap);
  return cap ? std::min(cap->cap, limit_.effective()) : limit_.effective();
}

Seconds GpuCore::KnobArrival() { return now_ + knob_latency_ * knob_random_.Uniform(0.5, 1.5); }

PowerLimit GpuCore::power_limit() const {
  const GpuModel& model = this->model();
  const auto cap = fault(FaultKind::kOutOfBandCap);
  const Watts requested = limit_.requested();
  return {.range = model.limit_range,
          .default_limit = model.default_limit,
          .requested = requested,
          .enforced = cap ? std::min(cap->cap, requested) : requested};
}

Status GpuCore::SetPowerLimit(Watts limit) {
  const PowerRange& range = model().limit_range;
  if (!(limit >= range.min && limit <= range.max))
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("power limit {} W is outside {} to {} W", limit.value(),
                             range.min.value(), range.max.value())};
  limit_.Request(limit, KnobArrival());
  ScheduleNextEvent();
  return Ok();
}

std::vector<Hertz> GpuCore::supported_clocks(ClockDomain domain) const {
  if (domain == ClockDomain::kGraphics) return GraphicsClocks(model());
  return {model().memory_clock};
}

Status GpuCore::CheckLockable(ClockDomain domain) const {
  if (CanLockClocks(model(), domain)) return Ok();
  return Error{
      ErrorCode::kNotSupported,
      fmt::format("a {} cannot lock its {} clock: parts do from {} on", model().id,
                  ClockDomainName(domain), domain == ClockDomain::kGraphics ? "Volta" : "Ampere")};
}

Status GpuCore::LockClock(ClockDomain domain, ClockRange range) {
  ZEUS_RETURN_IF_ERROR(CheckLockable(domain));
  const std::vector<Hertz> clocks = supported_clocks(domain);
  const auto inside = [&](Hertz clock) { return clock >= range.min && clock <= range.max; };
  if (std::none_of(clocks.begin(), clocks.end(), inside))
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("no supported {} clock between {} and {} MHz (supported: {} to {} MHz)",
                    ClockDomainName(domain), range.min.ToMega(), range.max.ToMega(),
                    clocks.front().ToMega(), clocks.back().ToMega())};
  // There is one memory clock: locking it changes nothing.
  if (domain == ClockDomain::kGraphics) RequestLock(range);
  return Ok();
}

Status GpuCore::ResetClock(ClockDomain domain) {
  ZEUS_RETURN_IF_ERROR(CheckLockable(domain));
  if (domain == ClockDomain::kGraphics) RequestLock(std::nullopt);
  return Ok();
}

void GpuCore::RequestLock(const std::optional<ClockRange>& range) {
  graphics_lock_.Request(range, KnobArrival());
  ScheduleNextEvent();
}

Status GpuCore::SetApplicationsClock(Hertz clock) {
  const std::vector<Hertz> clocks = supported_clocks(ClockDomain::kGraphics);
  if (std::find(clocks.begin(), clocks.end(), clock) == clocks.end())
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} MHz is not a supported graphics clock ({} to {} MHz)",
                             clock.ToMega(), clocks.front().ToMega(), clocks.back().ToMega())};
  RequestLock(ClockRange{.min = clocks.front(), .max = clock});
  return Ok();
}

Status GpuCore::ResetApplicationsClock() {
  RequestLock(std::nullopt);
  return Ok();
}

Result<std::uint32_t> GpuCore::AttachLoad(const LoadSpec& spec) {
  ZEUS_TRY(Load load, MakeLoad(spec, model()));
  load.planned_end = now_ + spec.duration;
  load.Beat(now_);
  ZEUS_TRY(const std::uint32_t id, loads_.Add(load));
  ChangeRegime();
  return id;
}

void GpuCore::DetachLoad(std::uint32_t id) {
  if (loads_.Find(id) == nullptr) return;
  loads_.Remove(id);
  ChangeRegime();
}

Result<std::uint32_t> GpuCore::Heartbeat(std::uint32_t id, const LoadSpec& spec) {
  Load* const load = loads_.Find(id);
  if (load == nullptr) return AttachLoad(spec);
  load->Beat(now_);
  ScheduleNextEvent();
  return id;
}

Result<const Load*> GpuCore::FindEngine(std::uint32_t id) const {
  const Load* const load = loads_.Find(id);
  if (load == nullptr || !load->engine())
    return Error{ErrorCode::kNotFound, fmt::format("no engine {} on GPU {}", id, index_)};
  return load;
}

Status GpuCore::BeginIteration(std::uint32_t id, const IterationWork& work) {
  ZEUS_TRY(const Load* const engine, FindEngine(id));
  Load next = *engine;
  ZEUS_RETURN_IF_ERROR(next.Begin(work, model()));
  next.Beat(now_);
  const Celsius temperature = this->temperature();
  const double position = regime_.profile.PositionAt(now_ - regime_.start);
  EndRegime();
  next.energy = engine->energy;  // With that of the regime that has ended.
  *loads_.Find(id) = next;
  BeginRegime(temperature, position);
  return Ok();
}

Status GpuCore::SpinUntil(std::uint32_t id, Seconds time) {
  ZEUS_TRY(const Load* const engine, FindEngine(id));
  if (engine->resting || time <= engine->work_end) return Ok();
  loads_.Find(id)->planned_steps += (time - engine->work_end) / engine->step_time;
  loads_.ForeseeEndOfWork(regime_.start);
  ScheduleNextEvent();
  return Ok();
}

Result<EngineState> GpuCore::Engine(std::uint32_t id) const {
  ZEUS_TRY(const Load* const load, FindEngine(id));
  EnergySum energy = load->energy;
  energy.Add(regime_.EnergyUntil(now_) * load->energy_share);
  return EngineState{.resting = load->resting,
                     .end = load->resting ? load->rests_since : load->work_end,
                     .energy = energy.Total()};
}

void GpuCore::AdvanceWhileIterating(std::uint32_t id, Seconds time) {
  while (true) {
    const Load* const load = loads_.Find(id);
    if (load == nullptr || load->resting) return;
    if (next_event_ >= time) break;
    AdvanceTo(next_event_);
  }
  AdvanceTo(time);
}

Result<const Load*> GpuCore::FindTraining(std::uint32_t id) const {
  const Load* load = loads_.Find(id);
  if (load == nullptr)
    return Error{ErrorCode::kNotFound, fmt::format("no load {} on GPU {}", id, index_)};
  if (load->plain())
    return Error{ErrorCode::kNotSupported, fmt::format("load {} has no steps: it draws power", id)};
  return load;
}

Result<Seconds> GpuCore::StepTime(std::uint32_t id) const {
  ZEUS_TRY(const Load* const load, FindTraining(id));
  return load->step_time;
}

Result<double> GpuCore::StepsDone(std::uint32_t id) const {
  ZEUS_TRY(const Load* const load, FindTraining(id));
  if (load->resting) return load->steps_done;
  return load->steps_done + (now_ - regime_.start) / load->step_time;
}

Result<Seconds> GpuCore::PredictEnd(std::uint32_t id) const {
  const Load* load = loads_.Find(id);
  if (load == nullptr)
    return Error{ErrorCode::kNotFound, fmt::format("no load {} on GPU {}", id, index_)};
  return load->end();
}

Status GpuCore::InjectFault(const Fault& fault) {
  ZEUS_RETURN_IF_ERROR(CheckFault(fault));
  if (!faults_.Add(fault))
    return Error{ErrorCode::kUnavailable,
                 fmt::format("{} faults are scheduled on GPU {}: clear them first",
                             FaultSchedule::kMaxFaults, index_)};
  ApplyEvents();
  return Ok();
}

void GpuCore::ClearFaults() {
  faults_.Clear();
  counter_.Thaw();
  ChangeRegime();
}

std::optional<Fault> GpuCore::DrawFault(FaultKind kind) {
  const auto active = fault(kind);
  if (!active || fault_random_.Uniform() >= active->probability) return std::nullopt;
  return active;
}

// The values of a simulated GPU that programs can read, and the exact ones that only scoring code
// may read.

namespace {

// Share of the board's power that memory draws, on parts that report it: HBM under a training load.
constexpr double kMemoryPowerShare = 0.15;

constexpr std::uint64_t kMiB = 1024ULL * 1024;
constexpr std::uint64_t kDriverMemory = 450 * kMiB;
constexpr std::uint64_t kContextMemory = 600 * kMiB;
constexpr double kLargestBatchShare = 0.8;

// The catalogue records no memory use: the largest batch size nearly fills the memory, and the
// rest follows in proportion.
std::uint64_t MemoryInUse(const Load& load, const GpuModel& model) {
  if (load.plain()) return kContextMemory;
  if (load.engine()) return kContextMemory + load.engine_memory;
  const Workload& workload = Workloads()[static_cast<std::size_t>(load.workload)];
  const double share = static_cast<double>(load.batch_size) / workload.batch_sizes.back();
  const double activations =
      kLargestBatchShare * std::min(share, 1.0) * static_cast<double>(model.memory_bytes);
  return kContextMemory + static_cast<std::uint64_t>(activations);
}

}  // namespace

Joules GpuCore::exact_energy() const {
  EnergySum energy = energy_;
  energy.Add(regime_.EnergyUntil(now_));
  return energy.Total();
}

Watts GpuCore::exact_power() const { return regime_.PowerAt(now_); }

Joules GpuCore::EnergyBetween(Seconds begin, Seconds end) const {
  Joules energy(0);
  if (end > regime_.start) energy += regime_.EnergyBetween(std::max(begin, regime_.start), end);
  if (begin < regime_.start) energy += history_.EnergyBetween(begin, std::min(end, regime_.start));
  return energy;
}

void GpuCore::UpdateCounter(CounterRegister& counter) const {
  const auto& period = model().sensors.counter_update;
  if (!period) return;
  const Seconds instant = LastUpdate(now_, *period, board_.counter_phase);
  // Updates of earlier regimes were taken when those ended.
  if (instant < regime_.start || instant <= counter.last_update()) return;
  EnergySum energy = energy_;
  energy.Add(regime_.EnergyUntil(instant));
  counter.Update(instant, energy.Total() * board_.gain + board_.offset * instant);
}

Result<std::uint64_t> GpuCore::counter_millijoules() const {
  if (!model().sensors.counter_update)
    return Error{ErrorCode::kNotSupported,
                 "this GPU has no energy counter (it is older than Volta)"};
  CounterRegister counter = counter_;
  UpdateCounter(counter);
  return counter.millijoules();
}

Result<Watts> GpuCore::power(PowerKind kind) const {
  const SensorSpec& sensors = model().sensors;
  if (const auto broken = fault(FaultKind::kPowerUnavailable); broken && broken->probability >= 1.0)
    return Error{ErrorCode::kUnavailable, "power reads as not available"};
  if (kind == PowerKind::kOneSecondAverage && !sensors.has_one_second_average)
    return Error{ErrorCode::kNotSupported, "this GPU has no 1-second average of power"};
  if (kind == PowerKind::kMemory && !sensors.has_memory_power)
    return Error{ErrorCode::kNotSupported, "this GPU does not measure the power of its memory"};

  const bool instant = kind == PowerKind::kInstant;
  const Seconds window = instant ? sensors.power_window : Seconds(1.0);
  const Seconds update =
      LastUpdate(now_, sensors.power_update, instant ? board_.power_phase : board_.average_phase);
  // A window may begin before time zero: the board was idle then.
  const Watts reported = board_.Reported(EnergyBetween(update - window, update) / window);
  return kind == PowerKind::kMemory ? reported * kMemoryPowerShare : reported;
}

Celsius GpuCore::temperature() const { return regime_.thermal.TemperatureAt(now_ - regime_.start); }

MemoryUse GpuCore::memory() const {
  const GpuModel& model = this->model();
  std::uint64_t used = kDriverMemory;
  for (const Load& load : loads_.loads()) used += MemoryInUse(load, model);
  return {.used_bytes = std::min(used, model.memory_bytes), .total_bytes = model.memory_bytes};
}

Hertz GpuCore::clock(ClockDomain domain) const {
  return domain == ClockDomain::kGraphics ? state_.graphics_clock : model().memory_clock;
}

ThrottleReasons GpuCore::throttle() const {
  const bool idle = loads_.none_works();
  const auto& lock = graphics_lock_.effective();
  return {.idle = idle,
          .power_cap = state_.power_capped,
          .thermal = cooling_ == Cooling::kSlowedDown,
          .locked_clock = !idle && lock && lock->max < model().graphics_clock.max};
}

void GpuCore::AddSlowTime(SlowTime& sum) const {
  const Seconds passed = std::max(now_ - regime_.start, Seconds(0));
  if (slow_by_.power_cap) sum.power += passed;
  if (slow_by_.thermal) sum.thermal += passed;
  if (slow_by_.locked_clock) sum.lock += passed;
}

SlowTime GpuCore::slow_time() const {
  SlowTime sum = slow_time_;
  AddSlowTime(sum);
  return sum;
}

std::vector<int> GpuCore::processes() const {
  std::vector<int> pids;
  for (const Load& load : loads_.loads())
    if (load.pid != 0 && std::find(pids.begin(), pids.end(), load.pid) == pids.end())
      pids.push_back(load.pid);
  return pids;
}

}  // namespace zeus::sim
