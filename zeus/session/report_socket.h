#pragma once

#include <poll.h>

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "zeus/base/file_descriptor.h"
#include "zeus/base/json_fwd.h"
#include "zeus/base/result.h"

namespace zeus {

// A Unix socket on which a command reports its epochs: one line of JSON each, or HTTP POST to any
// path. Every report is answered, by a line or by a JSON body. It never blocks. One owner.
class ReportSocket {
 public:
  // The socket is in a temporary folder that only this user can enter; both are removed with the
  // object.
  static Result<std::unique_ptr<ReportSocket>> Open();
  ~ReportSocket();
  ReportSocket(const ReportSocket&) = delete;
  ReportSocket& operator=(const ReportSocket&) = delete;

  std::filesystem::path path() const { return folder_ / "report.sock"; }

  // The descriptors to wait for.
  std::vector<::pollfd> WaitFor() const;

  // Receives a report and returns the answer to it. An answer with an "error" has HTTP status 400.
  using Handler = std::function<Json(const std::string& report)>;
  void Serve(const Handler& handler);

 private:
  struct Connection {
    explicit Connection(int descriptor) : socket(descriptor) {}
    FileDescriptor socket;
    std::string received{};
  };

  explicit ReportSocket(std::filesystem::path folder, int listener)
      : folder_(std::move(folder)), listener_(listener) {}

  void Accept();
  // Returns false when the connection is to be closed.
  static bool Serve(Connection& connection, const Handler& handler);

  std::filesystem::path folder_;
  FileDescriptor listener_;
  std::list<Connection> connections_;
};

}  // namespace zeus
