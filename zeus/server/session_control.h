#pragma once

// Included by http_server.cc alone, as http_session.h.

#include <boost/asio.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>  // Boost 1.74 forgets it.

#include "zeus/base/clock.h"
#include "zeus/server/http_message.h"
#include "zeus/server/http_server.h"
#include "zeus/server/memory_budget.h"
#include "zeus/server/worker_pool.h"

namespace zeus::server {

namespace asio = boost::asio;

// What a connection uses of the server. All of it outlives the connection.
struct SessionContext {
  asio::io_context& io;
  RequestHandler& handler;
  WorkerPool& readers;  // For what changes nothing, so that it never waits behind what does.
  WorkerPool& workers;
  WorkerPool& planners;  // For what may take long, so that the others never wait behind it.
  const Clock& clock;
  const HttpLimits& limits;
  MemoryBudget& bodies;   // That arrive or are worked on.
  MemoryBudget& answers;  // That are being sent.
  const bool& draining;
  std::function<std::string()> make_request_id;
  std::function<void(const std::string& job_id)> wake_streams;
};

// The other end of a connection.
struct Peer {
  std::string name{};     // For the log.
  std::string address{};  // Connections and logins are counted by it; empty for a Unix socket.
};

// The part of a connection that does not depend on its kind. Lives on the thread of the sockets.
class SessionControl {
 public:
  explicit SessionControl(asio::io_context& io) : wake_(io) {
    wake_.expires_at(asio::steady_timer::time_point::max());
  }
  virtual ~SessionControl() = default;

  // Ends what the connection waits for when its time is over.
  void CheckTime(TimePoint now) {
    if (now < deadline_) return;
    timed_out_ = true;
    Interrupt();
  }
  // The server is about to end: what has not arrived yet must do so soon.
  void Drain(TimePoint now) {
    if (idle_) Interrupt();
    if (arriving_) deadline_ = std::min(deadline_, now + kLastArrival);
    wake_.cancel();
  }
  void WakeStream(const std::string& job_id) {
    if (waits_for_ != job_id) return;
    news_ = true;
    wake_.cancel();
  }
  // Makes room for somebody else, unless a request is being answered.
  bool is_expendable() const { return !answering_ && !ended_; }
  void End() {
    deadline_ = TimePoint();
    timed_out_ = true;
    ended_ = true;
    Interrupt();
  }
  static constexpr Seconds kLastArrival{2};
  bool is_stream() const { return is_stream_; }

 protected:
  virtual void CancelSocket() = 0;

  void Interrupt() {
    CancelSocket();
    wake_.cancel();
  }

  TimePoint deadline_{Seconds(1e18)};
  bool timed_out_ = false;
  bool idle_ = false;      // Between two requests.
  bool arriving_ = false;  // Within one, or the client's half of a handshake.
  bool answering_ = false;
  bool ended_ = false;  // By End().
  bool news_ = false;
  bool is_stream_ = false;
  std::string waits_for_{};  // The job whose changes it waits for.
  asio::steady_timer wake_;  // Cancelled when there is something to look at.
};

}  // namespace zeus::server
