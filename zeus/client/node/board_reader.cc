#include "zeus/client/node/board_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "zeus/base/file.h"

namespace zeus::client {
namespace {

constexpr Seconds kRefreshInterval{1};
constexpr time_t kReceiveSeconds = 5;

// Epochs of one daemon's counters are small numbers.
constexpr std::uint64_t kEpochsOfADaemon = std::uint64_t{1} << 32U;

Error BadBoard(const char* why) {
  return {ErrorCode::kInvalidArgument, std::string("the board of the node daemon ") + why};
}

// A message and the descriptors that came with it.
struct Received {
  std::string text{};
  std::vector<std::unique_ptr<FileDescriptor>> files{};
};

Result<Received> ReceiveMessage(int socket) {
  Received received{.text = std::string(wire::kLongestBoardMessage, '\0')};
  iovec part{.iov_base = received.text.data(), .iov_len = received.text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(wire::kMostBoards * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  if (size < 0)
    return Error{ErrorCode::kUnavailable, "the node daemon shows no board within five seconds"};
  for (cmsghdr* rights = CMSG_FIRSTHDR(&header); rights != nullptr;
       rights = CMSG_NXTHDR(&header, rights)) {
    if (rights->cmsg_level != SOL_SOCKET || rights->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    std::vector<int> descriptors(count);
    std::memcpy(descriptors.data(), CMSG_DATA(rights), count * sizeof(int));
    for (const int descriptor : descriptors)
      received.files.push_back(std::make_unique<FileDescriptor>(descriptor));
  }
  if (size == 0 || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return Error{ErrorCode::kUnavailable, "the node daemon closed the connection to its board"};
  received.text.resize(static_cast<std::size_t>(size));
  return received;
}

Result<std::unique_ptr<FileDescriptor>> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return InvalidArgument("the path of the board is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  auto socket =
      std::make_unique<FileDescriptor>(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const timeval timeout{.tv_sec = kReceiveSeconds, .tv_usec = 0};
  if (!socket->valid() ||
      ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) != 0 ||
      ::setsockopt(socket->get(), SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)) != 0 ||
      ::connect(socket->get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return FileError(path, errno);
  return socket;
}

// Follows a device over all daemons that a reader gets to see.
class BoardFeed final : public ReadingFeed {
 public:
  BoardFeed(std::shared_ptr<BoardReader> reader, std::string device)
      : reader_(std::move(reader)), device_(std::move(device)) {
    Adopt();
  }

  bool HasNext(TimePoint now) override {
    if (cursor_ && cursor_->HasNext()) return true;
    if (!quiet_since_) quiet_since_ = now;
    if (now - *quiet_since_ < kRefreshInterval) return false;
    quiet_since_ = now;
    reader_->Refresh(now);
    if (reader_->version() == version_) return false;
    ++generations_;
    Adopt();
    return cursor_ && cursor_->HasNext();
  }

  std::optional<TimedReading> Next(TimePoint now) override {
    if (!HasNext(now)) return std::nullopt;
    quiet_since_.reset();
    std::optional<TimedReading> reading = cursor_->Next(now);
    if (reading && reading->reading.energy && reading->reading.energy->ok())
      reading->reading.energy->value().epoch += generations_ * kEpochsOfADaemon;
    return reading;
  }

 private:
  void Adopt() {
    version_ = reader_->version();
    boards_ = reader_->boards();
    const auto view = boards_->Find(device_);
    cursor_ = view ? std::optional<UpdateCursor>(*view) : std::nullopt;
  }

  const std::shared_ptr<BoardReader> reader_;
  const std::string device_;
  std::uint64_t version_ = 0;
  std::uint64_t generations_ = 0;
  std::shared_ptr<const MappedBoards> boards_{};  // Holds the memory of the cursor.
  std::optional<UpdateCursor> cursor_{};
  std::optional<TimePoint> quiet_since_{};
};

}  // namespace

Result<std::shared_ptr<const MappedBoards>> MappedBoards::Receive(int socket) {
  ZEUS_TRY(const Received received, ReceiveMessage(socket));
  std::shared_ptr<MappedBoards> boards(new MappedBoards());
  ZEUS_TRY(boards->message_, wire::ParseBoardMessage(received.text));
  if (received.files.size() != boards->message_.boards.size())
    return BadBoard("comes without its memory");
  for (std::size_t i = 0; i < received.files.size(); ++i)
    ZEUS_RETURN_IF_ERROR(boards->Map(*received.files[i], boards->message_.boards[i]));
  return std::shared_ptr<const MappedBoards>(std::move(boards));
}

Status MappedBoards::Map(const FileDescriptor& file, const wire::BoardDescription& description) {
  // Memory that shrinks under a reader ends it with SIGBUS.
  const int seals = ::fcntl(file.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return BadBoard("is not sealed");
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) != description.size || description.size == 0)
    return BadBoard("has another size than it says");
  void* const memory = ::mmap(nullptr, description.size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return FileError("the board of the node daemon", errno);
  mappings_.push_back({.memory = memory, .size = description.size});
  ZEUS_TRY(BoardView view, BoardView::Check(memory, description.size));
  if (view.devices().size() != description.devices.size())
    return BadBoard("has other devices than it says");
  views_.push_back(std::move(view));
  return Ok();
}

MappedBoards::~MappedBoards() {
  for (const Mapping& mapping : mappings_) ::munmap(mapping.memory, mapping.size);
}

std::optional<DeviceView> MappedBoards::Find(std::string_view device) const {
  if (device.empty()) return std::nullopt;
  for (std::size_t board = 0; board < views_.size(); ++board) {
    const auto& devices = message_.boards[board].devices;
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (devices[i].uuid == device || devices[i].pci_address == device ||
          devices[i].name == device)
        return views_[board].devices()[i];
  }
  return std::nullopt;
}

Result<std::shared_ptr<BoardReader>> BoardReader::Connect(const std::string& path) {
  std::shared_ptr<BoardReader> reader(new BoardReader(path));
  ZEUS_RETURN_IF_ERROR(reader->Reconnect());
  if (reader->boards_->message().boards.empty())
    return Error{ErrorCode::kPermissionDenied,
                 "the node daemon does not let this user read energy: ask for the scope gpu-read"};
  return reader;
}

std::shared_ptr<const MappedBoards> BoardReader::boards() const {
  const std::lock_guard lock(mutex_);
  return boards_;
}

Status BoardReader::Reconnect() {
  ZEUS_TRY(auto socket, ConnectTo(path_));
  ZEUS_TRY(auto boards, MappedBoards::Receive(socket->get()));
  socket_ = std::move(socket);
  boards_ = std::move(boards);
  version_.fetch_add(1, std::memory_order_release);
  return Ok();
}

void BoardReader::Refresh(TimePoint now) {
  const std::lock_guard lock(mutex_);
  if (refreshed_ && now - *refreshed_ < kRefreshInterval) return;
  refreshed_ = now;
  char byte = 0;
  const ssize_t size = ::recv(socket_->get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  const bool lives = size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
  // The old boards go on showing the last readings until another daemon answers.
  if (!lives) (void)Reconnect();
}

std::shared_ptr<ReadingFeed> BoardReader::Follow(std::string_view device) {
  if (!boards()->Find(device)) return nullptr;
  return std::make_shared<BoardFeed>(shared_from_this(), std::string(device));
}

}  // namespace zeus::client
