#pragma once

#include <memory>
#include <string>

#include "zeus/base/result.h"
#include "zeus/export/failure_notice.h"
#include "zeus/http/client.h"

namespace zeus {

// Metrics of one job and instance replace only each other: with the rank or the host as instance,
// ranks of a job do not overwrite each other.
struct PushTarget {
  std::string url;  // "http://host:9091", https likewise, with a path in front if it has one.
  std::string job;
  std::string instance;
};

// The path below the URL: "/metrics/job/train/instance/node1". Values that a path cannot hold are
// in base64, as the gateway wants them.
std::string PushPath(const PushTarget& target);

// A Prometheus push gateway, for programs that no server can scrape. One owner.
class PushGateway {
 public:
  // Returns kInvalidArgument when the URL is malformed or job or instance are empty.
  static Result<std::unique_ptr<PushGateway>> Create(const PushTarget& target);
  ~PushGateway();

  // Replaces what was pushed for this job and instance. Waits a few seconds at most for a gateway
  // that does not answer.
  Status Push(const std::string& text);

  // As Push(), but a failure is said once, not returned: pushing must not disturb the program.
  void TryPush(const std::string& text) { notice_.Note(Push(text)); }
  bool working() const { return notice_.working(); }

 private:
  PushGateway(std::unique_ptr<http::Client> client, std::string path, const std::string& url);

  std::unique_ptr<http::Client> client_;
  const std::string path_;
  FailureNotice notice_;
};

}  // namespace zeus
