#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus {

// JSON objects, one in each line, over TCP. Nothing here waits: Pump() moves what can be moved now.
// A peer whose machine went away is noticed after about half a minute. One owner.
class LineConnection {
 public:
  explicit LineConnection(int descriptor);

  // Begins to connect; the connection is open when the first line has come. `host` may be a name.
  // kUnavailable when the address means nothing here.
  static Result<std::unique_ptr<LineConnection>> Connect(const std::string& host,
                                                         std::uint16_t port);

  void Send(const Json& message);
  // False when the connection has ended; lines that came before can still be taken.
  bool Pump();
  // The next message that has come. A line that is no JSON object ends the connection.
  std::optional<Json> Next();

  bool sent_all() const { return outgoing_.empty(); }
  int descriptor() const { return socket_.get(); }

  // A peer that has not shown the secret yet may send only so much.
  void LimitLinesTo(std::size_t bytes) { longest_line_ = bytes; }
  static constexpr std::size_t kLongestLine = std::size_t{16} << 20U;

 private:
  bool Read();
  bool Write();

  FileDescriptor socket_;
  std::string incoming_;
  std::string outgoing_;
  std::size_t longest_line_ = kLongestLine;
  bool ended_ = false;
};

// A listening socket on all addresses of this machine. One owner.
class LineListener {
 public:
  // Port 0 takes a free one. kUnavailable when the port is taken.
  static Result<std::unique_ptr<LineListener>> Open(std::uint16_t port);

  std::uint16_t port() const { return port_; }
  // A connection that waits; null when none does.
  std::unique_ptr<LineConnection> Accept();
  int descriptor() const { return socket_.get(); }

 private:
  LineListener(int descriptor, std::uint16_t port) : socket_(descriptor), port_(port) {}

  FileDescriptor socket_;
  std::uint16_t port_;
};

}  // namespace zeus
