#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

// HTTP to zeusd's Unix socket for code that runs inside Slurm's daemons: blocking, one request per
// connection, bounded in time and size, and without libzeus.
namespace zeus::slurm {

// A moment after which an operation gives up.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::duration limit) : at_(Clock::now() + limit) {}
  // Milliseconds that are left, rounded up; 0 when it has passed.
  int Left() const;

 private:
  Clock::time_point at_;
};

struct DaemonReply {
  int status = 0;
  std::string body{};
};

// Sends a request and reads the whole answer, at most 1 MiB of it. nullopt when no answer came in
// time, with the reason in `why`. Thread-safe.
std::optional<DaemonReply> AskDaemon(const std::string& socket, std::string_view method,
                                     std::string_view target, std::string_view body,
                                     const Deadline& deadline, std::string& why);

// The path of a pattern, in which %n stands for the node's name.
std::string SocketOfNode(std::string_view pattern, std::string_view node);

}  // namespace zeus::slurm
