#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"

namespace zeus::activity {

// The bytes that processes share to say which devices they use when. Each process owns one slot and
// writes only there, so no process waits for another, and a process that dies at any instruction
// harms no other. The parts that several may change (the owners of slots, the keys) are changed
// under the lock of the file.

inline constexpr std::size_t kSlots = 256;
inline constexpr std::size_t kKeys = 128;
inline constexpr std::size_t kEvents = 2048;  // Per process, between two visits of a reader.
inline constexpr std::size_t kKeySize = 64;   // With the terminating zero.

static_assert(std::atomic<double>::is_always_lock_free);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// The hardware that events speak of by number.
struct Key {
  std::array<char, kKeySize> text;
};

struct Header {
  std::uint64_t magic;        // Written last, when the header is complete.
  std::uint64_t fingerprint;  // Identifies the layout: programs share a file only if theirs agree.
  std::uint64_t key_count;
  std::array<Key, kKeys> keys;
  std::atomic<std::uint64_t> slots_in_use;  // Slots from here on were never owned.
};

// On a cache line of its own: a slot is written often by one and read by all. Times are in seconds
// on CLOCK_MONOTONIC.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> generation;  // Grows with every change of owner; odd while owned.
  std::atomic<std::uint64_t> process;     // For people who look into the file.
  std::atomic<double> heartbeat;          // The owner announced everything up to this time.
  std::atomic<std::uint64_t> reserved;    // Events that are written or being written.
  std::atomic<std::uint64_t> published;   // Events that may be read.
  std::array<std::atomic<std::uint64_t>, kKeys / 64> keys;  // One bit for each that it may use.
  std::atomic<std::uint64_t> group;  // ActivityGroup::number() of the owner; 0: none.

  bool owned() const { return generation.load(std::memory_order_acquire) % 2 == 1; }
};

struct Event {
  std::atomic<double> time;
  std::atomic<double> weight;
  std::atomic<std::uint64_t> key;
};

// The last events of a slot, numbered from the first owner on, and the weights after them: who
// comes late or was too slow begins there. Pages of its own: only those of slots in use exist.
struct alignas(4096) Journal {
  std::array<std::atomic<double>, kKeys> weights;
  std::array<Event, kEvents> events;

  // Only by the owner of the slot. An event is overwritten after `reserved` grew; release on every
  // field lets who saw a new field also see that, without fences that thread sanitizers do not
  // understand.
  void Append(Slot& slot, double time, std::size_t key, double weight) {
    const std::uint64_t position = slot.published.load(std::memory_order_relaxed);
    slot.reserved.store(position + 1, std::memory_order_relaxed);
    Event& event = events[position % kEvents];
    event.time.store(time, std::memory_order_release);
    event.weight.store(weight, std::memory_order_release);
    event.key.store(key, std::memory_order_release);
    weights[key].store(weight, std::memory_order_release);
    slot.published.store(position + 1, std::memory_order_release);
  }
};

struct Layout {
  Header header;
  std::array<Slot, kSlots> slots;
  std::array<Journal, kSlots> journals;
};

inline constexpr std::uint64_t kMagic = 0x315443415355455a;  // "ZEUSACT1"
inline constexpr std::uint64_t kFingerprint = [] {
  std::uint64_t sum = 2;  // Counts changes of meaning that no size betrays.
  for (const std::size_t part :
       {sizeof(Header), sizeof(Slot), sizeof(Event), sizeof(Journal), kSlots, kKeys, kEvents})
    sum = sum * 1'000'003 + part;
  return sum;
}();

// The shared file, mapped. Thread-safe as far as its content is.
class ActivityFile {
 public:
  // Creates the file if there is none, and replaces one that is damaged or of another version of
  // Zeus if no process uses it. kPermissionDenied when it belongs to another user or others may
  // write it; kUnavailable when it is a link, or cannot be used and is in use.
  static Result<std::unique_ptr<ActivityFile>> Open(const std::filesystem::path& path,
                                                    Clock& clock);
  ~ActivityFile();
  ActivityFile(const ActivityFile&) = delete;
  ActivityFile& operator=(const ActivityFile&) = delete;

  Layout& layout() const { return *layout_; }

  // Held while owners of slots or keys change; a dying process gives it back.
  class Lock {
   public:
    explicit Lock(int descriptor) : descriptor_(descriptor) {}
    Lock(Lock&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
    Lock& operator=(Lock&&) = delete;
    ~Lock();

   private:
    int descriptor_;
  };
  // kUnavailable when another process, a stopped one perhaps, holds the lock for a second.
  Result<Lock> Acquire(Clock& clock);

  // Reserves memory for a slot's journal, so that a full file system is an error here and not a
  // SIGBUS later.
  Status ReserveJournal(std::size_t slot);

 private:
  ActivityFile(std::filesystem::path path, int descriptor);

  enum class State { kUsable, kUnknown, kReplaced };
  static Result<std::unique_ptr<ActivityFile>> OpenOnce(const std::filesystem::path& path);
  Result<State> Prepare(Clock& clock);
  Result<bool> IsStillThere() const;
  Status RemoveUnlessInUse();
  Status MarkInUse();
  Status CheckOwner() const;
  Result<State> FormatOrCheck();
  Status Reserve(std::size_t offset, std::size_t size);
  Status Map();

  const std::filesystem::path path_;
  const FileDescriptor file_;
  Layout* layout_ = nullptr;
};

// The file of this user: zeus-activity-<uid> in ZEUS_ACTIVITY_DIR, else in /dev/shm, else in
// XDG_RUNTIME_DIR. kNotFound when there is no such directory.
Result<std::filesystem::path> DefaultActivityPath();

}  // namespace zeus::activity
