// Random streams of every dialect through the gateway, for bench/llm_gateway.py: both ends in one
// process, which compares every byte of a body that comes out with the one that went in. Writes and
// reads are cut at random places, and so are the chunks.
//
// usage: llm_gateway_streams COUNT CONNECTIONS SEED
// Prints "upstream PORT", reads the port to connect to from standard input, prints a line of JSON
// after each tenth of the streams and one at the end, and ends when standard input does.
#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/loopback.h"
#include "zeus/base/random.h"
#include "zeus/wire/llm/testing/sample_responses.h"

namespace zeus::bench {
namespace {

using llm::testing::SampleResponse;

constexpr std::array<std::size_t, 5> kPieces = {1, 7, 60, 1000, 5000};
constexpr double kLongestSilence = 30;  // Seconds without progress.

// How the server marks the end of a body.
enum class Framing { kChunks, kLength, kClose };

struct Stream {
  std::size_t sample = 0;
  Framing framing = Framing::kChunks;
  std::string body{};
};

// Reads a response of the gateway, in whatever pieces it comes.
class ResponseReader {
 public:
  enum class State { kHead, kLength, kChunkSize, kChunk, kChunkEnd, kTrailer, kDone, kBroken };

  void Feed(std::string_view bytes) {
    input_.append(bytes);
    while (state_ != State::kDone && state_ != State::kBroken && Advance()) {
    }
    input_.erase(0, at_);
    at_ = 0;
  }
  State state() const { return state_; }
  int status() const { return status_; }
  const std::string& body() const { return body_; }

 private:
  bool Advance() {
    if (state_ == State::kLength || state_ == State::kChunk) return ReadData();
    const std::string_view end = state_ == State::kHead ? "\r\n\r\n" : "\r\n";
    const std::size_t found = input_.find(end, at_);
    if (found == std::string::npos) return false;
    const std::string line = input_.substr(at_, found - at_);
    at_ = found + end.size();
    if (state_ == State::kHead) return ReadHead(line);
    if (state_ == State::kChunkEnd) return Go(line.empty() ? State::kChunkSize : State::kBroken);
    if (state_ == State::kTrailer) return Go(line.empty() ? State::kDone : State::kTrailer);
    rest_ = std::strtoul(line.c_str(), nullptr, 16);
    return Go(rest_ > 0 ? State::kChunk : State::kTrailer);
  }

  bool ReadHead(const std::string& head) {
    status_ = std::atoi(head.c_str() + head.find(' '));
    if (head.find("ransfer-Encoding: chunked") != std::string::npos) return Go(State::kChunkSize);
    const std::size_t length = head.find("ontent-Length: ");
    if (length == std::string::npos) return Go(State::kBroken);
    rest_ = std::strtoul(head.c_str() + length + 15, nullptr, 10);
    return Go(rest_ > 0 ? State::kLength : State::kDone);
  }

  bool ReadData() {
    const std::size_t size = std::min(rest_, input_.size() - at_);
    body_.append(input_, at_, size);
    at_ += size;
    rest_ -= size;
    if (rest_ > 0) return false;
    return Go(state_ == State::kLength ? State::kDone : State::kChunkEnd);
  }

  bool Go(State state) {
    state_ = state;
    return true;
  }

  State state_ = State::kHead;
  std::string input_{};
  std::size_t at_ = 0;
  std::size_t rest_ = 0;
  int status_ = 0;
  std::string body_{};
};

struct Peer {
  enum class Kind { kListener, kServer, kClient } kind = Kind::kClient;
  int socket = -1;
  // A server's.
  std::string input{};
  std::string output{};
  bool closes = false;
  // A client's.
  std::size_t number = 0;
  ResponseReader reader{};
};

class Streams {
 public:
  Streams(std::size_t count, std::size_t connections, std::uint64_t seed)
      : count_(count),
        connections_(connections),
        random_(seed),
        samples_(llm::testing::SampleResponses()),
        epoll_(::epoll_create1(0)) {}

  int Run() {
    Add(Peer::Kind::kListener, Listen());
    port_ = ReadPort();
    const double begin = Now();
    for (std::size_t i = 0; i < std::min(connections_, count_); ++i)
      Begin(Add(Peer::Kind::kClient, Connect(port_)));
    progress_ = Now();
    while (finished_ < count_) {
      Step();
      if (Now() - progress_ > kLongestSilence) Die("no stream went on");
    }
    Report(Now() - begin, true);
    WaitForEndOfInput();
    return 0;
  }

 private:
  Peer& Add(Peer::Kind kind, int socket) {
    Peer* peer = nullptr;
    if (free_.empty()) {
      peer = &peers_.emplace_back();
    } else {
      peer = free_.back();
      free_.pop_back();
      *peer = Peer{};
    }
    peer->kind = kind;
    peer->socket = socket;
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = peer;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    return *peer;
  }

  void Remove(Peer& peer) {
    ::close(peer.socket);
    peer.socket = -1;
    std::erase(sending_, &peer);
    closed_.push_back(&peer);
  }

  // Sends the next request on this connection, in two pieces.
  void Begin(Peer& client) {
    if (begun_ == count_) return;
    client.number = begun_++;
    client.reader = ResponseReader();
    Stream stream{.sample = random_.Below(samples_.size()),
                  .framing = static_cast<Framing>(random_.Below(3))};
    const SampleResponse& sample = samples_[stream.sample];
    stream.body = llm::testing::Varied(sample.Body(), random_);
    kinds_.insert(stream.sample);
    const std::string request = fmt::format(
        "POST {} HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\nx-stream: {}\r\n"
        "Content-Length: {}\r\n\r\n{}",
        sample.target, client.number, sample.request.size(), sample.request);
    streams_[client.number % streams_.size()] = std::move(stream);
    const std::size_t cut = random_.Below(request.size());
    Send(client, std::string_view(request).substr(0, cut));
    Send(client, std::string_view(request).substr(cut));
  }

  bool Send(Peer& peer, std::string_view bytes) {
    if (bytes.empty()) return true;
    return ::send(peer.socket, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  void Step() {
    std::array<epoll_event, 256> events{};
    const int wait = sending_.empty() ? 100 : 0;
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait);
    for (int i = 0; i < count; ++i) {
      Peer& peer = *static_cast<Peer*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (peer.socket >= 0) Handle(peer);
    }
    const std::vector<Peer*> sending = sending_;
    for (Peer* server : sending) SendPiece(*server);
    // Other events of this round may still have named them.
    free_.insert(free_.end(), closed_.begin(), closed_.end());
    closed_.clear();
  }

  void Handle(Peer& peer) {
    if (peer.kind == Peer::Kind::kListener) {
      int socket = -1;
      while ((socket = ::accept4(peer.socket, nullptr, nullptr, SOCK_NONBLOCK)) >= 0) {
        SendAtOnce(socket);
        Add(Peer::Kind::kServer, socket);
      }
      return;
    }
    std::array<char, 8192> buffer;
    const std::size_t most = peer.kind == Peer::Kind::kServer
                                 ? buffer.size()
                                 : 1 + random_.Below(kPieces[1 + random_.Below(4)]);
    const ssize_t size = ::recv(peer.socket, buffer.data(), most, 0);
    if (size < 0 && errno == EAGAIN) return;
    const std::string_view bytes(buffer.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
    if (peer.kind == Peer::Kind::kServer) {
      if (bytes.empty()) return Remove(peer);
      peer.input.append(bytes);
      Serve(peer);
    } else {
      Receive(peer, bytes);
    }
  }

  void Receive(Peer& client, std::string_view bytes) {
    using State = ResponseReader::State;
    client.reader.Feed(bytes);
    if (client.reader.state() != State::kDone && client.reader.state() != State::kBroken &&
        !bytes.empty())
      return;
    const Stream& stream = streams_[client.number % streams_.size()];
    const bool whole = client.reader.state() == State::kDone && client.reader.status() == 200;
    if (!whole) ++failed_;
    if (client.reader.body() != stream.body) ++different_;
    bytes_ += stream.body.size();
    progress_ = Now();
    ++finished_;
    if (finished_ % std::max<std::size_t>(1, count_ / 10) == 0) Report(0, false);
    if (whole) return Begin(client);
    Remove(client);
    if (begun_ < count_) Begin(Add(Peer::Kind::kClient, Connect(port_)));
  }

  // Answers a request that has come as a whole. The gateway also asks for models and metrics.
  void Serve(Peer& peer) {
    const std::size_t head = peer.input.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const auto number_after = [&](std::string_view name) {
      const std::size_t found = peer.input.find(name);
      return found < head ? std::strtoul(peer.input.c_str() + found + name.size(), nullptr, 10) : 0;
    };
    if (peer.input.size() < head + 4 + number_after("ontent-Length: ")) return;
    const bool of_stream = peer.input.starts_with("POST");
    const Stream& stream = streams_[number_after("x-stream: ") % streams_.size()];
    peer.input.clear();
    peer.output =
        of_stream ? ResponseText(stream) : "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    peer.closes = of_stream && stream.framing == Framing::kClose;
    sending_.push_back(&peer);
  }

  std::string ResponseText(const Stream& stream) {
    std::string text = fmt::format("HTTP/1.{} 200 OK\r\nContent-Type: {}\r\n",
                                   stream.framing == Framing::kClose ? 0 : 1,
                                   samples_[stream.sample].content_type);
    if (stream.framing == Framing::kClose) return text + "\r\n" + stream.body;
    if (stream.framing == Framing::kLength)
      return text + fmt::format("Content-Length: {}\r\n\r\n{}", stream.body.size(), stream.body);
    text += "Transfer-Encoding: chunked\r\n\r\n";
    for (std::string_view rest = stream.body; !rest.empty();) {
      const std::string_view chunk = rest.substr(0, 1 + random_.Below(400));
      text += fmt::format("{:x}\r\n{}\r\n", chunk.size(), chunk);
      rest.remove_prefix(chunk.size());
    }
    return text + "0\r\n\r\n";
  }

  void SendPiece(Peer& server) {
    const std::size_t most = kPieces[random_.Below(kPieces.size())];
    const std::string_view piece =
        std::string_view(server.output).substr(0, 1 + random_.Below(most));
    if (!Send(server, piece)) {
      Remove(server);
      return;
    }
    ++pieces_;
    server.output.erase(0, piece.size());
    if (!server.output.empty()) return;
    std::erase(sending_, &server);
    if (server.closes) Remove(server);
  }

  void Report(double seconds, bool end) {
    fmt::print(
        "{{\"done\": {}, \"end\": {}, \"different\": {}, \"failed\": {}, \"kinds\": {}, "
        "\"bytes\": {}, \"pieces\": {}, \"seconds\": {:.3f}}}\n",
        finished_, end, different_, failed_, kinds_.size(), bytes_, pieces_, seconds);
    std::fflush(stdout);
  }

  const std::size_t count_;
  const std::size_t connections_;
  Random random_;
  const std::vector<SampleResponse> samples_;
  const int epoll_;
  int port_ = 0;
  std::deque<Peer> peers_{};  // Stable addresses.
  std::vector<Peer*> free_{};
  std::vector<Peer*> closed_{};
  std::vector<Peer*> sending_{};
  // More places than requests are under way, so each keeps its own until it has ended.
  std::vector<Stream> streams_ = std::vector<Stream>(std::size_t{1} << 16);
  std::set<std::size_t> kinds_{};
  double progress_ = 0;
  std::size_t begun_ = 0;
  std::size_t finished_ = 0;
  std::size_t different_ = 0;
  std::size_t failed_ = 0;
  std::size_t bytes_ = 0;
  std::size_t pieces_ = 0;
};

}  // namespace
}  // namespace zeus::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: llm_gateway_streams COUNT CONNECTIONS SEED\n");
    return 2;
  }
  return zeus::bench::Streams(std::strtoul(argv[1], nullptr, 10),
                              std::strtoul(argv[2], nullptr, 10),
                              std::strtoul(argv[3], nullptr, 10))
      .Run();
}
