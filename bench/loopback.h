#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Plain TCP on this machine for load programs, which end where something fails.
namespace zeus::bench {

inline double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] inline void Die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Lets the program open as many files as it may.
inline void RaiseFileLimit() {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

inline sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

inline void SendAtOnce(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// Listens on a free port, prints "upstream PORT", and returns the socket, which does not block.
inline int Listen() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 4096) != 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    Die("listen");
  std::printf("upstream %d\n", ntohs(address.sin_port));
  std::fflush(stdout);
  return listener;
}

// Reads the port to connect to from standard input.
inline int ReadPort() {
  int port = 0;
  if (std::scanf("%d", &port) != 1) Die("no port");
  return port;
}

// Returns a connection that does not block.
inline int Connect(int port) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(port);
  if (socket < 0 || ::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address))
    Die("connect");
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  SendAtOnce(socket);
  return socket;
}

// Waits until whoever started the program closes its standard input.
inline void WaitForEndOfInput() {
  char end = 0;
  while (::read(STDIN_FILENO, &end, 1) > 0) {
  }
}

}  // namespace zeus::bench
