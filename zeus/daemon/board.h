#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/base/result.h"
#include "zeus/base/ticker.h"
#include "zeus/base/units.h"
#include "zeus/device/node.h"
#include "zeus/device/reading_feed.h"
#include "zeus/wire/node/board_layout.h"
#include "zeus/wire/node/board_message.h"

namespace zeus::daemon {

// One board: a memory file in which the daemon shows what its recorder reads. It is sealed, so that
// nobody but this object can write or resize it, whoever holds a descriptor. Publish() is for one
// thread at a time, and never waits for a reader.
class Board {
 public:
  // kUnavailable when the system has no memory files, kInvalidArgument for too many devices.
  static Result<std::unique_ptr<Board>> Create(wire::BoardDescription description,
                                               std::uint64_t generation);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  // `device` is a position in the description. Times of a device do not decrease.
  void Publish(std::size_t device, TimePoint time, const DeviceReading& reading);

  const wire::BoardDescription& description() const { return description_; }
  // For readers; it cannot be written.
  int descriptor() const { return readable_->get(); }

 private:
  Board(wire::BoardDescription description, std::unique_ptr<FileDescriptor> readable,
        wire::board::Device* devices, void* memory);

  // Numbers of what was published last.
  struct Numbers {
    std::uint64_t update = 0;
    std::uint64_t telemetry = 0;
  };

  const wire::BoardDescription description_;
  const std::unique_ptr<FileDescriptor> readable_;
  wire::board::Device* const devices_;  // In the memory file.
  void* const memory_;
  std::vector<Numbers> numbers_;
};

// The boards of a machine, fed by the recorder. One for its GPUs, one for its CPUs and their
// memory, since not everybody may see both. One thread at a time.
class NodeBoards {
 public:
  struct Options {
    std::uint64_t generation = 0;     // Different for every start of the daemon.
    Seconds cpu_energy_period{0.01};  // Readings of CPUs that come sooner are not shown.
  };
  static Result<std::unique_ptr<NodeBoards>> Create(const Node& node, const Options& options);

  // Has the shape of EnergyMonitor::Options::recorded. Devices that are on no board are left out.
  void Record(const std::string& device, TimePoint time, const DeviceReading& reading);

  std::uint64_t generation() const { return options_.generation; }
  // Those that have a device.
  const std::vector<std::unique_ptr<Board>>& boards() const { return boards_; }

 private:
  explicit NodeBoards(const Options& options) : options_(options) {}
  Status Add(wire::BoardDescription description);

  struct Place {
    Board* board;
    std::size_t device;
    std::optional<TimePoint> shown{};  // When it was published last.
  };

  const Options options_;
  std::vector<std::unique_ptr<Board>> boards_;
  std::map<std::string, Place, std::less<>> places_;
};

// Hands the boards out: whoever connects to the socket gets one message with the boards that he may
// read, and keeps the connection open to see the end of the daemon. Nothing is read from clients.
// It has a thread of its own.
class BoardServer {
 public:
  // Decides whether the process at the other end of a connection may read boards of this kind.
  using Admits = std::function<bool(int socket, wire::BoardKind kind)>;
  // Called with the number of connections before a client gets its message, and when one has left;
  // on the thread of the server.
  using Counted = std::function<void(std::size_t connections)>;
  // More are closed at once, so that no user takes the places of others; root is not counted.
  static constexpr std::size_t kMostConnections = 2048;
  static constexpr std::size_t kMostOfUser = 256;

  // A socket of type SOCK_SEQPACKET that listens; a stale file at `path` is replaced. Readable and
  // writable for everybody: `admits` decides. kUnavailable names the path.
  static Result<std::unique_ptr<FileDescriptor>> Listen(const std::string& path);

  // The boards must outlive it. kUnavailable when the system has no descriptor or thread left.
  static Result<std::unique_ptr<BoardServer>> Start(std::unique_ptr<FileDescriptor> listening,
                                                    const NodeBoards& boards, Admits admits,
                                                    Counted counted = nullptr);
  ~BoardServer();  // Closes all connections.
  BoardServer(const BoardServer&) = delete;
  BoardServer& operator=(const BoardServer&) = delete;

 private:
  BoardServer(std::unique_ptr<FileDescriptor> listening, std::unique_ptr<FileDescriptor> stop,
              const NodeBoards& boards, Admits admits, Counted counted);
  void Serve();
  bool Accept();
  bool Send(int socket) const;
  void Count(std::size_t connections) const;

  struct Connection {
    std::unique_ptr<FileDescriptor> socket;
    uid_t user;
  };
  bool HasPlaceFor(uid_t user) const;

  const std::unique_ptr<FileDescriptor> listening_;
  const std::unique_ptr<FileDescriptor> stop_;  // Readable when the thread is to end.
  const NodeBoards& boards_;
  const Admits admits_;
  const Counted counted_;                // May be empty.
  std::vector<Connection> connections_;  // Only the thread uses them.
  std::unique_ptr<Ticker> thread_;
};

}  // namespace zeus::daemon
