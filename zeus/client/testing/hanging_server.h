#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <string>

#include "zeus/base/clock.h"
#include "zeus/base/file_descriptor.h"
#include "zeus/client/remote_job_service.h"
#include "zeus/job/job_service.h"

namespace zeus::testing {

// A server on this machine whose connections are accepted, by the system, and never answered.
class HangingServer {
 public:
  HangingServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const generic = reinterpret_cast<::sockaddr*>(&address);
    ::socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), generic, size), 0);
    EXPECT_EQ(::listen(listener_.get(), 64), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }

  const std::string& url() const { return url_; }

  // Waits until a client has connected; the timeout is reached only when the test fails.
  void AwaitClient() const {
    constexpr int kGuardMilliseconds = 60'000;
    ::pollfd event{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&event, 1, kGuardMilliseconds), 1) << "no client has connected";
  }

 private:
  FileDescriptor listener_;
  std::string url_;
};

// A service whose server begins to hang once trials have begun: registrations and starts are those
// of a real service, everything that a trial reports goes to a HangingServer.
class HangingJobService final : public ForwardingJobService {
 public:
  explicit HangingJobService(JobService& service)
      : ForwardingJobService(service),
        remote_(RemoteJobService::Connect({.url = server_.url()}, clock_).value()) {}

  Result<ReportAnswer> Report(const TrialReport& report) override {
    ++calls_;
    auto answer = remote_->Report(report);
    ++returned_;
    return answer;
  }
  Result<Trial> Heartbeat(const std::string& job_id, std::int64_t trial) override {
    return remote_->Heartbeat(job_id, trial);
  }
  Result<Trial> EndTrial(const TrialEnd& end) override { return remote_->EndTrial(end); }
  void CancelCalls() override { remote_->CancelCalls(); }

  const HangingServer& server() const { return server_; }
  int report_calls() const { return calls_; }
  int returned_report_calls() const { return returned_; }

 private:
  HangingServer server_;
  SystemClock clock_;
  std::unique_ptr<RemoteJobService> remote_;
  std::atomic<int> calls_ = 0;
  std::atomic<int> returned_ = 0;
};

}  // namespace zeus::testing
