#include "zeus/daemon/board.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/json.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1.
#endif

namespace zeus::daemon {
namespace {

using wire::board::Device;
using wire::board::Header;

Error SystemError(const char* doing) {
  return {ErrorCode::kUnavailable,
          fmt::format("{}: {}", doing, std::generic_category().message(errno))};
}

// An empty board in memory that is mapped for writing.
Device* MakeBoard(void* memory, std::size_t devices, std::uint64_t generation) {
  new (memory) Header{.magic = wire::board::kMagic,
                      .version = wire::board::kVersion,
                      .size = wire::board::SizeOf(devices),
                      .device_count = devices,
                      .device_size = sizeof(Device),
                      .updates = wire::board::kUpdates,
                      .telemetry = wire::board::kTelemetry,
                      .generation = generation};
  // The kernel's pages are zeros, which is what an empty record is.
  return reinterpret_cast<Device*>(static_cast<std::byte*>(memory) + sizeof(Header));
}

}  // namespace

Result<std::unique_ptr<Board>> Board::Create(wire::BoardDescription description,
                                             std::uint64_t generation) {
  const std::size_t devices = description.devices.size();
  if (devices > wire::board::kMostDevices)
    return InvalidArgument(fmt::format("a board has room for {} devices, not for {}",
                                       wire::board::kMostDevices, devices));
  description.size = wire::board::SizeOf(devices);
  const FileDescriptor file(::memfd_create("zeus-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return SystemError("make the memory file of a board");
  if (::ftruncate(file.get(), static_cast<off_t>(description.size)) != 0)
    return SystemError("size the memory file of a board");
  void* const memory =
      ::mmap(nullptr, description.size, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  if (memory == MAP_FAILED) return SystemError("map the memory file of a board");
  auto readable = std::make_unique<FileDescriptor>(
      ::open(fmt::format("/proc/self/fd/{}", file.get()).c_str(), O_RDONLY | O_CLOEXEC));
  std::unique_ptr<Board> board(new Board(std::move(description), std::move(readable),
                                         MakeBoard(memory, devices, generation), memory));
  // The mapping above stays writable; no other one can be made from now on.
  constexpr int kSeals = F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::fcntl(file.get(), F_ADD_SEALS, kSeals) != 0)
    return SystemError("seal the memory file of a board (needs Linux 5.1)");
  if (!board->readable_->valid()) return SystemError("open the memory file of a board again");
  return board;
}

Board::Board(wire::BoardDescription description, std::unique_ptr<FileDescriptor> readable,
             Device* devices, void* memory)
    : description_(std::move(description)),
      readable_(std::move(readable)),
      devices_(devices),
      memory_(memory),
      numbers_(description_.devices.size()) {}

Board::~Board() { ::munmap(memory_, description_.size); }

void Board::Publish(std::size_t device, TimePoint time, const DeviceReading& reading) {
  Device& target = devices_[device];
  Numbers& numbers = numbers_[device];
  std::uint64_t telemetry = 0;
  if (reading.telemetry) {
    telemetry = ++numbers.telemetry;
    const auto words = wire::board::Encode(telemetry, time, *reading.telemetry);
    target.telemetry[(telemetry - 1) % wire::board::kTelemetry].Write(words);
    target.newest_telemetry.Write(words);
  }
  const std::uint64_t number = ++numbers.update;
  const auto words = wire::board::Encode(number, time, reading, telemetry);
  target.ring[(number - 1) % wire::board::kUpdates].Write(words);
  target.newest.Write(words);
  target.updates.store(number, std::memory_order_release);
}

// --- the boards of a machine ---

Result<std::unique_ptr<NodeBoards>> NodeBoards::Create(const Node& node, const Options& options) {
  std::unique_ptr<NodeBoards> boards(new NodeBoards(options));
  wire::BoardDescription gpus{.kind = wire::BoardKind::kGpu};
  for (const auto& gpu : node.gpus)
    gpus.devices.push_back({.name = gpu->name(),
                            .uuid = gpu->identity().uuid,
                            .pci_address = gpu->identity().pci_address});
  wire::BoardDescription cpus{.kind = wire::BoardKind::kCpu};
  for (const auto& cpu : node.cpus) {
    cpus.devices.push_back({.name = cpu->name()});
    if (const EnergyMeter* const dram = cpu->dram()) cpus.devices.push_back({.name = dram->name()});
  }
  for (wire::BoardDescription* board : {&gpus, &cpus})
    if (!board->devices.empty()) ZEUS_RETURN_IF_ERROR(boards->Add(std::move(*board)));
  return boards;
}

Status NodeBoards::Add(wire::BoardDescription description) {
  ZEUS_TRY(std::unique_ptr<Board> board, Board::Create(std::move(description), generation()));
  const auto& devices = board->description().devices;
  for (std::size_t i = 0; i < devices.size(); ++i)
    places_.emplace(devices[i].name, Place{.board = board.get(), .device = i});
  boards_.push_back(std::move(board));
  return Ok();
}

void NodeBoards::Record(const std::string& device, TimePoint time, const DeviceReading& reading) {
  const auto found = places_.find(device);
  if (found == places_.end()) return;
  Place& place = found->second;
  if (place.board->description().kind == wire::BoardKind::kCpu && place.shown &&
      time - *place.shown < options_.cpu_energy_period)
    return;
  place.shown = time;
  place.board->Publish(place.device, time, reading);
}

// --- handing them out ---

Result<std::unique_ptr<FileDescriptor>> BoardServer::Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return InvalidArgument("the path of the socket is too long: " + path);
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  auto socket = std::make_unique<FileDescriptor>(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket->valid()) return SystemError("make the socket of the boards");
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  // A file that nobody answers is left over from an earlier daemon.
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (::connect(probe.get(), where, sizeof(address)) == 0)
    return Error{ErrorCode::kUnavailable, path + ": another daemon answers there"};
  if (errno == ECONNREFUSED) ::unlink(path.c_str());
  if (::bind(socket->get(), where, sizeof(address)) != 0 || ::listen(socket->get(), 128) != 0)
    return FileError(path, errno);
  if (::chmod(path.c_str(), 0666) != 0) return FileError(path, errno);
  return socket;
}

Result<std::unique_ptr<BoardServer>> BoardServer::Start(std::unique_ptr<FileDescriptor> listening,
                                                        const NodeBoards& boards, Admits admits,
                                                        Counted counted) {
  auto stop = std::make_unique<FileDescriptor>(::eventfd(0, EFD_CLOEXEC));
  if (!stop->valid()) return SystemError("start the server of the boards");
  // A client that leaves between poll() and accept() must not hold the thread.
  const int flags = ::fcntl(listening->get(), F_GETFL);
  if (flags < 0 || ::fcntl(listening->get(), F_SETFL, flags | O_NONBLOCK) != 0)
    return SystemError("use the socket of the boards");
  std::unique_ptr<BoardServer> server(new BoardServer(std::move(listening), std::move(stop), boards,
                                                      std::move(admits), std::move(counted)));
  try {
    server->thread_ = std::make_unique<Ticker>("zeusd-board", [server = server.get()] {
      server->Serve();
      return Ticker::kWhenWoken;
    });
  } catch (const std::system_error&) {
    return NoThreadError();
  }
  return server;
}

BoardServer::BoardServer(std::unique_ptr<FileDescriptor> listening,
                         std::unique_ptr<FileDescriptor> stop, const NodeBoards& boards,
                         Admits admits, Counted counted)
    : listening_(std::move(listening)),
      stop_(std::move(stop)),
      boards_(boards),
      admits_(std::move(admits)),
      counted_(std::move(counted)) {}

BoardServer::~BoardServer() {
  const std::uint64_t one = 1;
  (void)!::write(stop_->get(), &one, sizeof(one));
  thread_.reset();
}

void BoardServer::Serve() {
  constexpr int kForEver = -1;
  constexpr int kPause = 100;  // Milliseconds without new connections while descriptors are short.
  std::vector<pollfd> polled;
  bool accepting = true;
  for (;;) {
    polled.assign({{.fd = stop_->get(), .events = POLLIN, .revents = 0},
                   {.fd = accepting ? listening_->get() : -1, .events = POLLIN, .revents = 0}});
    // Clients say nothing: whatever comes from them is their end, or a reason to end.
    for (const auto& connection : connections_)
      polled.push_back({.fd = connection.socket->get(), .events = POLLIN, .revents = 0});
    if (::poll(polled.data(), polled.size(), accepting ? kForEver : kPause) < 0 && errno != EINTR)
      return;
    if (polled[0].revents != 0) return;
    std::size_t entry = 2;
    if (std::erase_if(connections_, [&](const auto&) { return polled[entry++].revents != 0; }) > 0)
      Count(connections_.size());
    accepting = polled[1].revents == 0 || Accept();
  }
}

// Returns false when the system has no descriptor left.
bool BoardServer::Accept() {
  auto socket = std::make_unique<FileDescriptor>(
      ::accept4(listening_->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket->valid()) return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(socket->get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return true;
  if (!HasPlaceFor(peer.uid)) return true;
  Count(connections_.size() + 1);
  if (Send(socket->get()))
    connections_.push_back({.socket = std::move(socket), .user = peer.uid});
  else
    Count(connections_.size());
  return true;
}

bool BoardServer::HasPlaceFor(uid_t user) const {
  if (connections_.size() >= kMostConnections) return false;
  if (user == 0) return true;
  const auto of_user = std::ranges::count(connections_, user, &Connection::user);
  return static_cast<std::size_t>(of_user) < kMostOfUser;
}

void BoardServer::Count(std::size_t connections) const {
  if (counted_) counted_(connections);
}

bool BoardServer::Send(int socket) const {
  wire::BoardMessage message{.generation = boards_.generation()};
  std::array<int, wire::kMostBoards> descriptors{};
  for (const auto& board : boards_.boards()) {
    if (!admits_(socket, board->description().kind)) continue;
    descriptors[message.boards.size()] = board->descriptor();
    message.boards.push_back(board->description());
  }
  std::string text = JsonText(wire::ToJson(message));
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(descriptors))> control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (!message.boards.empty()) {
    const std::size_t size = message.boards.size() * sizeof(int);
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(size);
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(size);
    std::memcpy(CMSG_DATA(rights), descriptors.data(), size);
  }
  return ::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(text.size());
}

}  // namespace zeus::daemon
