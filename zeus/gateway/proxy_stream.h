#pragma once

// Only proxy.cc includes this header and the others that name it: compiling Boost.Asio takes long.

#include <boost/asio.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace zeus::gateway {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Local = asio::local::stream_protocol;
using Socket = asio::generic::stream_protocol::socket;

// The outcome of one attempt to move bytes.
enum class Io {
  kDone,
  kWouldBlock,
  kEnd,  // The peer ended the connection properly.
  kFailed,
};

// A connection that never blocks: TCP or a Unix socket, in the clear or with TLS, whose handshake
// happens within the first reads and writes. The proxy waits until a socket is ready and then moves
// bytes through buffers that all connections share, so that an idle connection holds none. One
// owner.
class Stream {
 public:
  explicit Stream(Socket socket) : socket_(std::move(socket)) {
    error_code ignored;
    socket_.non_blocking(true, ignored);
    socket_.set_option(tcp::no_delay(true), ignored);  // Fails for Unix sockets, harmlessly.
  }

  // The peer is a client. Returns false when OpenSSL has no memory.
  bool AcceptTls(SSL_CTX& context) {
    return MakeTls(context) && (SSL_set_accept_state(ssl()), true);
  }
  // The peer is a server, whose certificate must be for `host`.
  bool ConnectTls(SSL_CTX& context, const std::string& host) {
    if (!MakeTls(context)) return false;
    SSL_set_connect_state(ssl());
    error_code no_address;
    (void)asio::ip::make_address(host, no_address);
    if (!no_address) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl()), host.c_str()) == 1;
    // SSL_set_tlsext_host_name() is a macro with a C cast.
    SSL_ctrl(ssl(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
             const_cast<char*>(host.c_str()));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    return SSL_set1_host(ssl(), host.c_str()) == 1;
  }

  Io Read(std::span<char> buffer, std::size_t& size) {
    size = 0;
    if (tls_) {
      ERR_clear_error();
      return TlsOutcome(SSL_read_ex(ssl(), buffer.data(), buffer.size(), &size));
    }
    const ssize_t got = ::recv(socket_.native_handle(), buffer.data(), buffer.size(), 0);
    if (got == 0) return Io::kEnd;
    if (got < 0) return FailureOrBlock();
    size = static_cast<std::size_t>(got);
    return Io::kDone;
  }

  Io Write(std::string_view bytes, std::size_t& size) {
    size = 0;
    if (tls_) {
      ERR_clear_error();
      return TlsOutcome(SSL_write_ex(ssl(), bytes.data(), bytes.size(), &size));
    }
    const ssize_t sent = ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0) return FailureOrBlock();
    size = static_cast<std::size_t>(sent);
    return Io::kDone;
  }

  // Whether bytes can be read without waiting for the socket.
  bool has_decrypted_bytes() const { return tls_ && SSL_pending(tls_.get()) > 0; }
  // Whether the attempt that would block waits for the peer's bytes, as a write of TLS may.
  bool wants_read() const { return wants_read_; }
  // Whether the peer's certificate was refused.
  bool is_distrusted() const { return tls_ && SSL_get_verify_result(tls_.get()) != X509_V_OK; }

  // Whether the peer has sent something, or ended the connection, although nothing was asked.
  bool IsStale() {
    char byte = 0;
    const ssize_t got =
        ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);  // NOLINT
    return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
  }

  template <class Handler>
  void WaitReadable(Handler&& handler) {
    socket_.async_wait(Socket::wait_read, std::forward<Handler>(handler));
  }
  template <class Handler>
  void WaitWritable(Handler&& handler) {
    socket_.async_wait(Socket::wait_write, std::forward<Handler>(handler));
  }

  // Tells the peer that no more bytes come.
  void EndWriting() {
    error_code ignored;
    if (tls_) SSL_shutdown(ssl());
    socket_.shutdown(Socket::shutdown_send, ignored);
  }
  void Close() {
    error_code ignored;
    socket_.close(ignored);
  }
  bool is_open() const { return socket_.is_open(); }

 private:
  using Ssl = std::unique_ptr<SSL, decltype(&SSL_free)>;

  SSL* ssl() { return tls_.get(); }

  bool MakeTls(SSL_CTX& context) {
    tls_ = Ssl(SSL_new(&context), &SSL_free);
    if (!tls_ || SSL_set_fd(ssl(), socket_.native_handle()) != 1) return false;
    SSL_set_mode(ssl(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                            SSL_MODE_RELEASE_BUFFERS);
    return true;
  }

  Io TlsOutcome(int result) {
    wants_read_ = false;
    if (result == 1) return Io::kDone;
    switch (SSL_get_error(ssl(), result)) {
      case SSL_ERROR_WANT_READ:
        wants_read_ = true;
        return Io::kWouldBlock;
      case SSL_ERROR_WANT_WRITE:
        return Io::kWouldBlock;
      case SSL_ERROR_ZERO_RETURN:
        return Io::kEnd;
      default:
        return Io::kFailed;
    }
  }

  static Io FailureOrBlock() {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Io::kWouldBlock
                                                                     : Io::kFailed;
  }

  Socket socket_;
  Ssl tls_{nullptr, &SSL_free};
  bool wants_read_ = false;
};

}  // namespace zeus::gateway
