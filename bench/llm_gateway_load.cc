// Both ends of the streams of bench/llm_gateway.py in one process, so that one clock times an event
// from the server's write to the client's read.
//
// usage: llm_gateway_load STREAMS EVENTS_PER_SECOND SECONDS
// Prints "upstream PORT", reads the port to connect to from standard input, opens the streams,
// prints "open", measures, prints a line of JSON, and ends when standard input does.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bench/loopback.h"

namespace zeus::bench {
namespace {

struct Peer {
  enum class Kind { kListener, kServer, kClient } kind = Kind::kClient;
  int socket = -1;
  std::string input{};
  bool streaming = false;  // A server that has got its request.
  double due = 0;          // The time of its next event.
  bool got_first = false;  // A client.
};

class Load {
 public:
  Load(int streams, double rate, double seconds)
      : streams_(streams), period_(1 / rate), seconds_(seconds), epoll_(::epoll_create1(0)) {}

  int Run() {
    Add(Peer::Kind::kListener, Listen());
    const int port = ReadPort();
    const double begin = Now();
    while (open_ < streams_) {
      // Connections are opened a few at a time, so that no queue of a listener overflows.
      if (static_cast<int>(clients_) - open_ < 64 && static_cast<int>(clients_) < streams_)
        Open(port);
      else
        Step(1);
      if (Now() - begin > 120) Die("the streams do not open");
    }
    std::printf("open\n");
    std::fflush(stdout);
    latencies_.clear();
    const double start = Now();
    while (Now() - start < seconds_) Step(1);
    Report(Now() - start);
    WaitForEndOfInput();
    return 0;
  }

 private:
  Peer& Add(Peer::Kind kind, int socket) {
    if (socket < 0) Die("socket");
    peers_.push_back({.kind = kind, .socket = socket});
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &peers_.back();
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    return peers_.back();
  }

  void Open(int port) {
    const int socket = Connect(port);
    const std::string body =
        R"({"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hello"}]})";
    const std::string request =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Type: application/json\r\n"
        "Content-Length: " +
        std::to_string(body.size()) + "\r\n\r\n" + body;
    Add(Peer::Kind::kClient, socket);
    if (::send(socket, request.data(), request.size(), 0) < 0) Die("send");
    ++clients_;
  }

  void Step(int milliseconds) {
    epoll_event events[512];
    const int count = ::epoll_wait(epoll_, events, 512, milliseconds);
    for (int i = 0; i < count; ++i) Handle(*static_cast<Peer*>(events[i].data.ptr));
    const double now = Now();
    for (Peer* server : servers_)
      if (server->due <= now) SendEvent(*server, now);
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
    char buffer[65536];
    const ssize_t size = ::recv(peer.socket, buffer, sizeof buffer, 0);
    if (size <= 0) {
      if (size < 0 && errno == EAGAIN) return;
      ::close(peer.socket);
      if (peer.kind == Peer::Kind::kClient || peer.streaming) ++broken_;
      std::erase(servers_, &peer);
      return;
    }
    peer.input.append(buffer, static_cast<std::size_t>(size));
    if (peer.kind == Peer::Kind::kServer)
      Serve(peer);
    else
      Measure(peer);
  }

  // The gateway also asks for the models and the metrics; only the streams matter here.
  void Serve(Peer& peer) {
    if (peer.streaming || peer.input.find("\r\n\r\n") == std::string::npos) return;
    if (!peer.input.starts_with("POST")) {
      const std::string_view answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
      if (::send(peer.socket, answer.data(), answer.size(), 0) < 0) ++broken_;
      peer.input.clear();
      return;
    }
    if (!peer.input.ends_with("}]}")) return;
    peer.input.clear();
    peer.streaming = true;
    const std::string_view head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    if (::send(peer.socket, head.data(), head.size(), 0) < 0) ++broken_;
    // Streams are out of step with each other.
    peer.due = Now() + period_ * static_cast<double>(servers_.size() % 97) / 97;
    servers_.push_back(&peer);
  }

  void SendEvent(Peer& peer, double now) {
    char text[256];
    const int size = std::snprintf(
        text, sizeof text,
        "data: "
        "{\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"model\":\"m\","
        "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"@%.7f@\"}}]}\n\n",
        now);
    char piece[300];
    const int length = std::snprintf(piece, sizeof piece, "%x\r\n%s\r\n", size, text);
    if (::send(peer.socket, piece, static_cast<std::size_t>(length), MSG_NOSIGNAL) < 0) ++broken_;
    peer.due = std::max(peer.due + period_, now);
  }

  void Measure(Peer& peer) {
    const double now = Now();
    std::size_t used = 0;
    while (true) {
      const std::size_t begin = peer.input.find('@', used);
      const std::size_t end = begin == std::string::npos ? begin : peer.input.find('@', begin + 1);
      if (end == std::string::npos) break;
      latencies_.push_back(now - std::strtod(peer.input.c_str() + begin + 1, nullptr));
      used = end + 1;
    }
    if (used == 0) return;
    peer.input.erase(0, used);
    if (!peer.got_first) ++open_;
    peer.got_first = true;
  }

  void Report(double seconds) {
    std::sort(latencies_.begin(), latencies_.end());
    const auto quantile = [this](double q) {
      return latencies_.empty() ? 0
                                : latencies_[static_cast<std::size_t>(
                                      q * static_cast<double>(latencies_.size() - 1))];
    };
    std::printf(
        "{\"events\": %zu, \"seconds\": %.3f, \"p50\": %.7f, \"p99\": %.7f, \"broken\": %d}\n",
        latencies_.size(), seconds, quantile(0.5), quantile(0.99), broken_);
    std::fflush(stdout);
  }

  const int streams_;
  const double period_;
  const double seconds_;
  const int epoll_;
  std::deque<Peer> peers_{};  // Stable addresses.
  std::vector<Peer*> servers_{};
  std::vector<double> latencies_{};
  std::size_t clients_ = 0;
  int open_ = 0;
  int broken_ = 0;
};

}  // namespace
}  // namespace zeus::bench

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: llm_gateway_load STREAMS EVENTS_PER_SECOND SECONDS\n");
    return 2;
  }
  zeus::bench::RaiseFileLimit();
  return zeus::bench::Load(std::atoi(argv[1]), std::atof(argv[2]), std::atof(argv[3])).Run();
}
