// Each process has a slot with a ring of events: "from time t on I use device k with weight w".
// Writers never wait: an event is reserved, written and published by atomic counters. Readers
// follow the rings of all other slots (SlotFollower); one that was overtaken by a fast writer
// starts again from the slot's present weights. A process also publishes a sign of life, up to
// which it has announced everything. What all processes have announced is settled and handed to the
// monitor in the order of time, so every process splits a joule by the same weights.
#include "zeus/monitor/sharing/shared_activity_board.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "zeus/base/process.h"
#include "zeus/base/random.h"
#include "zeus/base/text.h"

namespace zeus::activity {
namespace {

TimePoint ToTime(double seconds) { return TimePoint(Seconds(seconds)); }

// The file may hold anything; a wrong number must not spread.
double SaneWeight(double weight) { return std::isfinite(weight) && weight > 0 ? weight : 0; }

// Not a number, or of a clock that ran before the machine was started again.
TimePoint SaneTime(double seconds, TimePoint now) {
  const TimePoint time = ToTime(seconds);
  return time <= now + kSilence ? time : now;
}

}  // namespace

SlotFollower::SlotFollower(const Slot& slot, const Journal& journal,
                           std::span<const unsigned> device_of_key, unsigned device_count)
    : slot_(slot), journal_(journal), device_of_key_(device_of_key), weights_(device_count, 0.0) {}

TimePoint SlotFollower::LastSign() const {
  return std::max(newest_, ToTime(slot_.heartbeat.load(std::memory_order_acquire)));
}

bool SlotFollower::Alive(TimePoint now) const {
  const TimePoint sign = LastSign();
  return slot_.owned() && sign >= now - kSilence && sign <= now + kSilence;
}

void SlotFollower::Add(TimePoint time, unsigned device, double weight) {
  if (weights_[device] == weight) return;
  weights_[device] = weight;
  if (!news_.empty()) time = std::max(time, news_.back().time);
  news_.push_back({.time = time, .device = device, .weight = weight});
}

// Weights are absolute: an event after `position_` whose weight is already in the table is told
// again when it is read, and changes nothing then.
void SlotFollower::TakeWeights(TimePoint time) {
  position_ = slot_.published.load(std::memory_order_acquire);
  for (std::size_t key = 0; key < kKeys; ++key) {
    const unsigned device = device_of_key_[key];
    if (device == kNotOurs) continue;
    Add(time, device, SaneWeight(journal_.weights[key].load(std::memory_order_acquire)));
  }
}

void SlotFollower::StartAt(TimePoint now) {
  silent_ = !Alive(now);
  if (silent_) {
    position_ = slot_.published.load(std::memory_order_acquire);
  } else {
    TakeWeights(now);
  }
}

// False when events were overwritten before or while they were read.
bool SlotFollower::ReadEvents(TimePoint now) {
  const std::uint64_t published = slot_.published.load(std::memory_order_acquire);
  const std::uint64_t begin = position_;
  if (published < begin || published - begin > kEvents) return false;
  for (; position_ < published; ++position_) {
    const Event& event = journal_.events[position_ % kEvents];
    const double time = event.time.load(std::memory_order_acquire);
    const double weight = event.weight.load(std::memory_order_acquire);
    const std::uint64_t key = event.key.load(std::memory_order_acquire);
    const std::uint64_t reserved = slot_.reserved.load(std::memory_order_acquire);
    if (reserved > position_ + kEvents) return false;
    newest_ = std::max(newest_, SaneTime(time, now));
    const unsigned device = key < kKeys ? device_of_key_[key] : kNotOurs;
    if (device != kNotOurs) Add(newest_, device, SaneWeight(weight));
  }
  return true;
}

void SlotFollower::Follow(TimePoint now) {
  if (!ReadEvents(now)) {
    ++overruns_;
    TakeWeights(std::min(LastSign(), now));
  }
  const bool was_silent = silent_;
  silent_ = !Alive(now);
  if (silent_) {
    for (unsigned device = 0; device < weights_.size(); ++device)
      Add(std::min(LastSign(), now), device, 0);
  } else if (was_silent) {
    // Stopped for a while and woken: what it did not take back holds again.
    TakeWeights(std::min(LastSign(), now));
  }
}

bool SlotFollower::MayUseOurs() const {
  for (std::size_t key = 0; key < kKeys; ++key) {
    if (device_of_key_[key] == kNotOurs) continue;
    if ((slot_.keys[key / 64].load(std::memory_order_relaxed) >> (key % 64) & 1) != 0) return true;
  }
  return false;
}

// For a process that uses a device the time of its death matters, so it is awaited until that is
// certain. One that does nothing may merely have no recorder thread.
TimePoint SlotFollower::KnownUntil(TimePoint now) const {
  if (silent_ || !MayUseOurs()) return now;
  const bool uses_ours =
      std::any_of(weights_.begin(), weights_.end(), [](double weight) { return weight > 0; });
  const TimePoint sign = std::min(now, LastSign());
  return uses_ours ? sign : std::max(sign, now - kNewsTimeout);
}

void SlotFollower::TakeUntil(TimePoint horizon, std::vector<News>& settled) {
  while (!news_.empty() && news_.front().time <= horizon) {
    settled.push_back(news_.front());
    news_.pop_front();
  }
}

}  // namespace zeus::activity

namespace zeus {
namespace {

using activity::kKeys;
using activity::kKeySize;
using activity::kSilence;
using activity::kSlots;
using activity::Slot;
using activity::SlotFollower;

double ToNumber(TimePoint time) { return time.time_since_epoch().count(); }

constexpr const char* kGroupVariable = "ZEUS_ACTIVITY_GROUP";

// A heartbeat far ahead is one of an earlier boot.
bool Silent(const Slot& slot, TimePoint now) {
  const TimePoint heartbeat(Seconds(slot.heartbeat.load(std::memory_order_acquire)));
  return !(heartbeat >= now - kSilence && heartbeat <= now + kSilence);
}

bool Free(const Slot& slot, TimePoint now) { return !slot.owned() || Silent(slot, now); }

// Frees the slot of a dead owner: its claims end at its last sign of life. Needs the lock of the
// file.
void Vacate(activity::Layout& layout, std::size_t index) {
  Slot& slot = layout.slots[index];
  activity::Journal& journal = layout.journals[index];
  for (std::size_t key = 0; key < kKeys; ++key) {
    if (journal.weights[key].load() != 0) journal.Append(slot, slot.heartbeat.load(), key, 0);
  }
  if (slot.owned()) slot.generation.fetch_add(1, std::memory_order_release);
}

// The number of a key, which it gets if it has none. kKeys when there is no room.
std::size_t FindOrAddDevice(const std::string& wanted, activity::Header& header) {
  std::size_t key = 0;
  while (key < header.key_count && header.keys[key].text.data() != wanted) ++key;
  if (key == header.key_count && key < kKeys) {
    header.keys[key].text.fill('\0');
    std::copy(wanted.begin(), wanted.end(), header.keys[key].text.begin());
    ++header.key_count;
  }
  return key;
}

// The claims of a group's host and members on a device.
struct GroupClaim {
  std::uint64_t id;
  double host = 0;
  double members = 0;
};

void Claim(const ActivityGroup& group, double weight, std::vector<GroupClaim>& groups) {
  auto found = std::ranges::find(groups, group.id, &GroupClaim::id);
  if (found == groups.end()) found = groups.insert(groups.end(), {.id = group.id});
  // One host may run inside another one: they measure the same work.
  if (group.host)
    found->host = std::max(found->host, weight);
  else
    found->members += weight;
}

Status CheckKeys(const std::vector<std::string>& keys) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].empty() || keys[i].size() >= kKeySize) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the key {} of a device must have 1 to {} characters",
                               Quote(keys[i]), kKeySize - 1)};
    }
    if (std::find(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(i), keys[i]) !=
        keys.begin() + static_cast<std::ptrdiff_t>(i))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("two devices have the key {}", Quote(keys[i]))};
  }
  return Ok();
}

thread_local ActivityGroup group_of_thread{};  // Set by ScopedActivityGroup.

}  // namespace

ActivityGroup ActivityGroup::Parse(std::string_view text) {
  constexpr std::string_view kHost = "host:";
  const bool host = text.starts_with(kHost);
  if (host) text.remove_prefix(kHost.size());
  std::uint64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id, 16);
  if (error != std::errc() || end != text.data() + text.size() || id >> 63U != 0) return {};
  return {.id = id, .host = host};
}

ActivityGroup ActivityGroup::FromEnvironment() {
  const char* const text = std::getenv(kGroupVariable);
  return text != nullptr ? Parse(text) : ActivityGroup{};
}

ActivityGroup ActivityGroup::Current() {
  return group_of_thread.id != 0 ? group_of_thread : FromEnvironment();
}

ScopedActivityGroup::ScopedActivityGroup(ActivityGroup group)
    : before_(std::exchange(group_of_thread, group)) {}

ScopedActivityGroup::~ScopedActivityGroup() { group_of_thread = before_; }

ActivityGroup ActivityGroup::NewHost() {
  std::uint64_t id = FromEnvironment().id;
  while (id == 0) id = SystemEntropy() >> 1U;
  return {.id = id, .host = true};
}

void ActivityGroup::BecomeHost() { ::setenv(kGroupVariable, NewHost().ToText().c_str(), 1); }

void ActivityGroup::BecomeHostOf(std::uint64_t id) {
  if (const std::uint64_t outer = FromEnvironment().id; outer != 0) id = outer;
  ::setenv(kGroupVariable, ActivityGroup{.id = id, .host = true}.ToText().c_str(), 1);
}

std::string ActivityGroup::VariableOfMembers() {
  const ActivityGroup group = FromEnvironment();
  return group.host ? group.Variable() : std::string();
}

std::string ActivityGroup::ToText() const { return fmt::format("{}{:x}", host ? "host:" : "", id); }

std::string ActivityGroup::Variable() const { return fmt::format("{}={:x}", kGroupVariable, id); }

Result<std::unique_ptr<SharedActivityBoard>> SharedActivityBoard::Open(
    const std::filesystem::path& path, std::vector<std::string> device_keys, Clock& clock,
    ActivityGroup group) {
  ZEUS_RETURN_IF_ERROR(CheckKeys(device_keys));
  WatchForks();
  ZEUS_TRY(auto file, activity::ActivityFile::Open(path, clock));
  std::unique_ptr<SharedActivityBoard> board(
      new SharedActivityBoard(std::move(file), std::move(device_keys), clock, group));
  ZEUS_RETURN_IF_ERROR(board->Join());
  return board;
}

SharedActivityBoard::SharedActivityBoard(std::unique_ptr<activity::ActivityFile> file,
                                         std::vector<std::string> device_keys, Clock& clock,
                                         ActivityGroup group)
    : file_(std::move(file)),
      device_keys_(std::move(device_keys)),
      clock_(clock),
      group_(group),
      fork_generation_(ForkGeneration()),
      own_weights_(device_keys_.size(), 0.0),
      told_(device_keys_.size(), 0.0) {}

SharedActivityBoard::~SharedActivityBoard() {
  if (forked() || !membership_.holds()) return;
  const double now = ToNumber(clock_.Now());
  for (unsigned device = 0; device < own_weights_.size(); ++device) {
    if (own_weights_[device] != 0)
      membership_.journal->Append(*membership_.slot, now, key_of_device_[device], 0);
  }
  membership_.slot->generation.store(membership_.generation + 1, std::memory_order_release);
}

bool SharedActivityBoard::forked() const { return ForkGeneration() != fork_generation_; }

// Also the way back for a process that was stopped so long that its slot was given to another.
Status SharedActivityBoard::Join() {
  ZEUS_TRY(const auto lock, file_->Acquire(clock_));
  const TimePoint now = clock_.Now();
  const std::lock_guard guard(mutex_);
  ZEUS_TRY(const std::size_t index, ClaimSlot(now));
  ZEUS_RETURN_IF_ERROR(RegisterKeys(now));
  Slot& slot = file_->layout().slots[index];
  activity::Journal& journal = file_->layout().journals[index];
  for (unsigned device = 0; device < own_weights_.size(); ++device) {
    if (own_weights_[device] != 0)
      journal.Append(slot, ToNumber(now), key_of_device_[device], own_weights_[device]);
  }
  membership_ = {.slot = &slot, .journal = &journal, .generation = slot.generation.load() + 1};
  for (std::size_t word = 0; word < slot.keys.size(); ++word) slot.keys[word].store(0);
  for (const std::uint64_t key : key_of_device_)
    slot.keys[key / 64].fetch_or(std::uint64_t{1} << (key % 64));
  slot.process.store(static_cast<std::uint64_t>(::getpid()));
  slot.group.store(group_.number(), std::memory_order_release);
  slot.heartbeat.store(ToNumber(now), std::memory_order_release);
  slot.generation.store(membership_.generation, std::memory_order_release);
  FollowOthers(now);
  return Ok();
}

// Under the lock of the file.
Result<std::size_t> SharedActivityBoard::ClaimSlot(TimePoint now) {
  activity::Layout& layout = file_->layout();
  const auto free = std::find_if(layout.slots.begin(), layout.slots.end(),
                                 [&](const Slot& slot) { return Free(slot, now); });
  if (free == layout.slots.end()) {
    return Error{
        ErrorCode::kUnavailable,
        fmt::format("{} processes of this user measure already, more cannot share energy", kSlots)};
  }
  const auto index = static_cast<std::size_t>(free - layout.slots.begin());
  ZEUS_RETURN_IF_ERROR(file_->ReserveJournal(index));
  Vacate(layout, index);
  if (layout.header.slots_in_use.load() <= index) layout.header.slots_in_use.store(index + 1);
  return index;
}

// Needs the lock of the file. While no slot is in use, the keys of devices that are gone are
// removed too.
Status SharedActivityBoard::RegisterKeys(TimePoint now) {
  activity::Layout& layout = file_->layout();
  if (std::all_of(layout.slots.begin(), layout.slots.end(),
                  [&](const Slot& slot) { return Free(slot, now); })) {
    for (std::size_t index = 0; index < layout.header.slots_in_use.load(); ++index)
      Vacate(layout, index);
    layout.header.key_count = 0;
  }
  device_of_key_.fill(SlotFollower::kNotOurs);
  key_of_device_.clear();
  for (const std::string& wanted : device_keys_) {
    const std::size_t key = FindOrAddDevice(wanted, layout.header);
    if (key == kKeys)
      return Error{ErrorCode::kUnavailable,
                   fmt::format("processes of this user measure {} devices already", kKeys)};
    device_of_key_[key] = static_cast<unsigned>(key_of_device_.size());
    key_of_device_.push_back(key);
  }
  return Ok();
}

void SharedActivityBoard::FollowOthers(TimePoint now) {
  earlier_overruns_ = overruns();
  others_.clear();
  FollowNewcomers();
  for (const auto& other : others_) {
    if (other != nullptr) other->follower.StartAt(now);
  }
}

void SharedActivityBoard::FollowNewcomers() {
  activity::Layout& layout = file_->layout();
  const std::uint64_t in_use =
      std::min<std::uint64_t>(layout.header.slots_in_use.load(std::memory_order_acquire), kSlots);
  const auto devices = static_cast<unsigned>(device_keys_.size());
  for (std::size_t index = others_.size(); index < in_use; ++index) {
    const bool own = &layout.slots[index] == membership_.slot;
    others_.push_back(
        own ? nullptr
            : std::make_unique<Other>(
                  Other{.slot = &layout.slots[index],
                        .follower = SlotFollower(layout.slots[index], layout.journals[index],
                                                 device_of_key_, devices),
                        .weights = std::vector<double>(devices, 0.0)}));
  }
}

void SharedActivityBoard::Announce(TimePoint time, unsigned device, double weight) {
  // Before the lock, which another thread of the parent may have held at the fork.
  if (forked()) return;
  const std::lock_guard guard(mutex_);
  own_weights_[device] = weight;
  if (membership_.holds())
    membership_.journal->Append(*membership_.slot, ToNumber(time), key_of_device_[device], weight);
}

std::vector<ActivityBoard::Change> SharedActivityBoard::Poll(TimePoint now) {
  // Without a place nothing more is heard; the next call tries again. In a child it stays like
  // that.
  if (forked() || (!membership_.holds() && !Join().ok())) {
    known_until_ = std::max(known_until_, now - kMargin);
    return {};
  }
  membership_.slot->heartbeat.store(ToNumber(now), std::memory_order_release);
  FollowNewcomers();
  TimePoint horizon = now - kMargin;
  for (const auto& other : others_) {
    if (other == nullptr) continue;
    other->follower.Follow(now);
    horizon = std::min(horizon, other->follower.KnownUntil(now));
  }
  return Settle(std::exchange(known_until_, std::max(known_until_, horizon)));
}

double SharedActivityBoard::OthersOn(unsigned device) const {
  double sum = 0;
  std::vector<GroupClaim> groups;
  for (const auto& other : others_) {
    if (other == nullptr || other->weights[device] == 0) continue;
    const std::uint64_t number = other->slot->group.load(std::memory_order_acquire);
    const ActivityGroup group{.id = number / 2, .host = number % 2 == 1};
    if (group.id != 0 && group.id != group_.id) {
      Claim(group, other->weights[device], groups);
    } else if (group.id == 0 || (!group_.host && !group.host)) {
      sum += other->weights[device];
    }
  }
  for (const GroupClaim& group : groups) sum += std::max(group.host, group.members);
  return sum;
}

std::vector<ActivityBoard::Change> SharedActivityBoard::Settle(TimePoint told_until) {
  struct Due {
    SlotFollower::News news;
    Other* of;
  };
  std::vector<Due> due;
  std::vector<SlotFollower::News> settled;
  for (const auto& other : others_) {
    if (other == nullptr) continue;
    settled.clear();
    other->follower.TakeUntil(known_until_, settled);
    for (const SlotFollower::News& news : settled) due.push_back({news, other.get()});
  }
  std::stable_sort(due.begin(), due.end(),
                   [](const Due& a, const Due& b) { return a.news.time < b.news.time; });
  std::vector<Change> changes;
  const auto tell = [&](TimePoint time, unsigned device) {
    const double weight = OthersOn(device);
    if (weight == told_[device]) return;
    told_[device] = weight;
    changes.push_back({.time = std::max(time, told_until), .device = device, .weight = weight});
  };
  for (const Due& change : due) {
    change.of->weights[change.news.device] = change.news.weight;
    tell(change.news.time, change.news.device);
  }
  // After a new beginning some of the others may be missing.
  for (unsigned device = 0; device < told_.size(); ++device) tell(known_until_, device);
  return changes;
}

std::uint64_t SharedActivityBoard::overruns() const {
  std::uint64_t sum = earlier_overruns_;
  for (const auto& other : others_) {
    if (other != nullptr) sum += other->follower.overruns();
  }
  return sum;
}

}  // namespace zeus
