#pragma once

// Only session.h includes this header.

#include <boost/asio.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "zeus/base/clock.h"
#include "zeus/http/courier.h"
#include "zeus/http/limits.h"
#include "zeus/http/message.h"
#include "zeus/http/worker_pool.h"

namespace zeus::http {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr TimePoint kNoDeadline{Seconds(1e18)};

class NewsBell;
class SharedChunk;

// The parts of the server that its connections use. All of them outlive every connection.
struct SessionContext {
  asio::io_context& io;
  RequestHandler& handler;
  WorkerPool& readers;       // Reads have threads of their own, so they never wait behind changes.
  WorkerPool& workers;       // For Work::kWrite.
  WorkerPool& slow_workers;  // Slow work has threads of its own, so nothing else waits behind it.
  const Clock& clock;
  const Limits& limits;
  MemoryBudget& bodies;   // Bodies that arrive or are being handled.
  MemoryBudget& answers;  // Answers that are being sent.
  const bool& draining;   // The server is shutting down.
  std::function<std::string()> make_request_id;
  std::function<void(const std::string& topic)> wake_topic;
  NewsBell& bell;
  std::shared_ptr<Courier> courier;
  SharedChunk& chunk;
};

// A request, with the share of the memory budget that its body takes. It lives as long as a
// worker uses it, even after the connection has given up waiting.
struct Incoming {
  explicit Incoming(MemoryBudget& bodies) : memory(bodies) {}
  Request request{};
  MemoryBudget::Share memory;
};

// Whether a client's name for its request may stand in the log.
inline bool IsPlainId(std::string_view id) {
  constexpr std::string_view kPlain =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_.:";
  return !id.empty() && id.size() <= 100 && id.find_first_not_of(kPlain) == std::string_view::npos;
}

// The latest bytes that connections share, as a chunk: a thousand streams send it, and it is made
// once. Used on the thread of the sockets alone.
class SharedChunk {
 public:
  const std::string& Of(const std::shared_ptr<const std::string>& bytes) {
    if (bytes != bytes_) {
      bytes_ = bytes;
      text_ = fmt::format("{:x}\r\n{}\r\n", bytes->size(), *bytes);
    }
    return text_;
  }

 private:
  std::shared_ptr<const std::string> bytes_{};  // Kept, so that no others get its address.
  std::string text_{};
};

class SessionControl;

// Sessions that have news, told by other threads. However many there are, the thread of the sockets
// is woken once for all that came before it looks: an event may be for a thousand streams.
// Thread-safe.
class NewsBell {
 public:
  explicit NewsBell(asio::io_context& io) : io_(io) {}

  void Ring(std::shared_ptr<SessionControl> session);

 private:
  void Deliver();

  asio::io_context& io_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<SessionControl>> waiting_{};  // Guarded by mutex_.
};

// The handler's knowledge of a connection for as long as the connection lives. A worker that still
// answers keeps the session alive, and with it this object.
class Attendance {
 public:
  Attendance(RequestHandler& handler, std::shared_ptr<const ConnectionPeer> peer)
      : handler_(handler), peer_(std::move(peer)) {}
  ~Attendance() {
    if (peer_) handler_.Disconnected(*peer_);
  }
  Attendance(const Attendance&) = delete;
  Attendance& operator=(const Attendance&) = delete;

  const std::shared_ptr<const ConnectionPeer>& peer() const { return peer_; }

 private:
  RequestHandler& handler_;
  const std::shared_ptr<const ConnectionPeer> peer_;
};

// The other end of a connection.
struct Peer {
  std::string name{};     // For the log.
  std::string address{};  // The key by which connections and logins are counted; may be empty.
  std::unique_ptr<Attendance> attendance{};
  std::string refusal{};  // Why the handler refuses the connection; empty if it does not.
};

// The part of a connection that does not depend on the kind of its socket. It lives on the thread
// of the sockets.
class SessionControl {
 public:
  explicit SessionControl(asio::io_context& io) : wake_(io) {
    wake_.expires_at(asio::steady_timer::time_point::max());
  }
  virtual ~SessionControl() = default;

  // Interrupts the present operation when its deadline has passed.
  void CheckTime(TimePoint now) {
    if (now < deadline_) return;
    timed_out_ = true;
    Interrupt();
  }
  // Prepares for the end of the server: an idle connection ends, and a request that is arriving
  // must be complete soon. A client that takes nothing of a stream has `last_write` for the rest.
  void Drain(TimePoint now, Seconds last_write) {
    if (idle_) Interrupt();
    if (arriving_) deadline_ = std::min(deadline_, now + kLastArrival);
    if (is_stream_ && writing_) deadline_ = std::min(deadline_, now + last_write);
    wake_.cancel();
  }
  // Makes a stream or an awaited answer on this topic look for news at once.
  void WakeTopic(const std::string& topic) {
    if (topic_ != topic) return;
    news_ = true;
    wake_.cancel();
  }
  // A pushed response has news.
  virtual void WakeForNews() = 0;
  // The client has closed its end: streams and awaited answers end at once.
  void ClientGone() {
    gone_ = true;
    wake_.cancel();
  }
  // Whether the connection may be ended in favour of another: no request is being answered.
  bool is_expendable() const { return !answering_ && !ended_; }
  void End() {
    deadline_ = TimePoint();
    timed_out_ = true;
    ended_ = true;
    Interrupt();
  }
  bool is_stream() const { return is_stream_; }

 protected:
  static constexpr Seconds kLastArrival{2};

  virtual void CancelSocket() = 0;

  void Interrupt() {
    CancelSocket();
    wake_.cancel();
  }

  TimePoint deadline_ = kNoDeadline;
  bool timed_out_ = false;
  bool idle_ = false;      // Between two requests.
  bool arriving_ = false;  // The client is sending a request or its half of a handshake.
  bool answering_ = false;
  bool ended_ = false;  // End() was called.
  bool gone_ = false;   // ClientGone() was called.
  bool news_ = false;   // The topic changed since the last look.
  bool is_stream_ = false;
  bool writing_ = false;     // The client has not taken all of the last write.
  std::string topic_{};      // The topic of the stream or the awaited answer; empty: none.
  asio::steady_timer wake_;  // Cancelled when there is something to look at.
};

inline void NewsBell::Ring(std::shared_ptr<SessionControl> session) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = waiting_.empty();
    waiting_.push_back(std::move(session));
  }
  if (first) asio::post(io_, [this] { Deliver(); });
}

inline void NewsBell::Deliver() {
  std::vector<std::shared_ptr<SessionControl>> sessions;
  {
    const std::lock_guard lock(mutex_);
    sessions.swap(waiting_);
  }
  for (const auto& session : sessions) session->WakeForNews();
}

}  // namespace zeus::http
