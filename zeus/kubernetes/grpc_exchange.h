#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "zeus/base/result.h"

namespace zeus::kubernetes {

// One unary gRPC call as a client, without a socket: takes the bytes that a server sent and says
// which ones to send to it. The server may be hostile: it can neither make the exchange read
// outside of its input nor take more memory than the limit and what HTTP/2 needs.
//
// The protocol: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. One owner.
class GrpcExchange {
 public:
  struct Request {
    std::string method{};          // "/v1.PodResourcesLister/List"
    std::string message{};         // The encoded request.
    std::size_t limit = 16 << 20;  // Bytes of the answer's message.
  };

  explicit GrpcExchange(const Request& request);
  ~GrpcExchange();
  GrpcExchange(const GrpcExchange&) = delete;
  GrpcExchange& operator=(const GrpcExchange&) = delete;

  // Returns the bytes to send now; empty when there are none.
  Result<std::string> TakeOutput();
  // kUnavailable when the bytes are no HTTP/2, or the answer is larger than the limit.
  Status Receive(std::string_view bytes);
  // Whether the call has ended: Answer() says how.
  bool done() const;

  // The encoded message of the answer, or the error of the server. To be called once, when done().
  Result<std::string> Answer();

 private:
  class Session;
  std::unique_ptr<Session> session_;
};

}  // namespace zeus::kubernetes
