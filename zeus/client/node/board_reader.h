#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/client/node/board_view.h"
#include "zeus/device/reading_feed.h"
#include "zeus/wire/node/board_message.h"

namespace zeus::client {

// The boards that one start of the daemon has given to this process, in memory. Immutable, but for
// what the daemon writes into them. Thread-safe.
class MappedBoards {
 public:
  // Takes the message and its descriptors from the socket. kUnavailable when none comes within five
  // seconds, kInvalidArgument for boards that could shrink or are malformed.
  static Result<std::shared_ptr<const MappedBoards>> Receive(int socket);
  ~MappedBoards();
  MappedBoards(const MappedBoards&) = delete;
  MappedBoards& operator=(const MappedBoards&) = delete;

  const wire::BoardMessage& message() const { return message_; }
  // By UUID, PCI address or the daemon's name of the device.
  std::optional<DeviceView> Find(std::string_view device) const;

 private:
  MappedBoards() = default;
  Status Map(const FileDescriptor& file, const wire::BoardDescription& description);

  struct Mapping {
    void* memory;
    std::size_t size;
  };
  wire::BoardMessage message_{};
  std::vector<Mapping> mappings_{};
  std::vector<BoardView> views_{};  // One per board of the message.
};

// The connection to a daemon's board socket. It stays open, and shows when the daemon ends; the
// boards of the next daemon are taken when somebody looks for them. Thread-safe.
class BoardReader : public std::enable_shared_from_this<BoardReader> {
 public:
  // kUnavailable and kNotFound when no daemon answers at the path. kPermissionDenied when it shows
  // this process nothing.
  static Result<std::shared_ptr<BoardReader>> Connect(const std::string& path);

  std::shared_ptr<const MappedBoards> boards() const;
  // Grows when there are other boards than before.
  std::uint64_t version() const { return version_.load(std::memory_order_acquire); }

  // Looks whether the daemon has ended, and then for another one. Costs a system call or a few; at
  // most one a second of `now` has an effect.
  void Refresh(TimePoint now);

  // The readings of a device; null where it is on no board. They go on with the next daemon; its
  // counter begins a new epoch, since nobody knows what was used in between.
  std::shared_ptr<ReadingFeed> Follow(std::string_view device);

 private:
  explicit BoardReader(std::string path) : path_(std::move(path)) {}
  Status Reconnect();

  const std::string path_;
  std::atomic<std::uint64_t> version_ = 0;
  mutable std::mutex mutex_;  // Guards the rest.
  std::unique_ptr<FileDescriptor> socket_{};
  std::shared_ptr<const MappedBoards> boards_{};
  std::optional<TimePoint> refreshed_{};
};

}  // namespace zeus::client
