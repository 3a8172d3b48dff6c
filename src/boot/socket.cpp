// SPDX-License-Identifier: Apache-2.0
#include "boot/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstring>
#include <memory>
#include <system_error>

#include "boot/digest.hpp"
#include "rma/error.hpp"

namespace rma::boot {

namespace {

constexpr int socket_flags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

struct local_name {
  sockaddr_un name{};
  socklen_t bytes = 0;
};

using resolved = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

local_name make_local_name(const std::string& text) {
  local_name made;
  made.name.sun_family = AF_UNIX;
  // The leading zero byte makes it abstract: no file, gone with the last descriptor.
  const std::size_t bytes = std::min(text.size(), sizeof made.name.sun_path - 1);
  std::memcpy(made.name.sun_path + 1, text.data(), bytes);
  made.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + bytes);
  return made;
}

/// Null with `error` set if the name service has no answer.
resolved resolve(const boot_address& where, bool to_listen, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* list = nullptr;
  error = ::getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &list);
  return {error == 0 ? list : nullptr, [](addrinfo* a) {
            if (a != nullptr) ::freeaddrinfo(a);
          }};
}

[[noreturn]] void cannot_listen(const boot_address& where, const std::string& why) {
  throw Error(status::bad_boot, "cannot listen at " + to_text(where) + ": " + why +
                                    (where.local ? "" : "; give rank 0 a free port of its own host in RMA_BOOT"));
}

unique_fd listen_local(boot_address& where) {
  if (where.host.empty()) where.host = "rma-" + random_hex(16);
  unique_fd fd{::socket(AF_UNIX, socket_flags, 0)};
  if (!fd) cannot_listen(where, error_text(errno));
  const local_name at = make_local_name(where.host);
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at.name), at.bytes) != 0 ||
      ::listen(fd.get(), SOMAXCONN) != 0) {
    cannot_listen(where, error_text(errno));
  }
  return fd;
}

std::string bound_port(int fd) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return "0";
  const bool v6 = name.ss_family == AF_INET6;
  return std::to_string(ntohs(v6 ? reinterpret_cast<const sockaddr_in6*>(&name)->sin6_port
                                 : reinterpret_cast<const sockaddr_in*>(&name)->sin_port));
}

unique_fd listen_tcp(boot_address& where) {
  int error = 0;
  const resolved list = resolve(where, true, error);
  if (!list) cannot_listen(where, ::gai_strerror(error));
  int last = 0;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    unique_fd fd{::socket(at->ai_family, socket_flags, at->ai_protocol)};
    const int on = 1;
    if (fd && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd.get(), at->ai_addr, at->ai_addrlen) == 0 && ::listen(fd.get(), SOMAXCONN) == 0) {
      where.port = bound_port(fd.get());
      return fd;
    }
    last = errno;
  }
  cannot_listen(where, error_text(last));
}

/// Retrying against a free local port can meet itself: TCP then connects the socket to its own end.
bool connected_to_itself(int fd) {
  sockaddr_storage mine{};
  sockaddr_storage theirs{};
  socklen_t mine_bytes = sizeof mine;
  socklen_t theirs_bytes = sizeof theirs;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&mine), &mine_bytes) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr*>(&theirs), &theirs_bytes) == 0 && mine_bytes == theirs_bytes &&
         std::memcmp(&mine, &theirs, mine_bytes) == 0;
}

/// 0, or the error of a connect that may have to be waited for.
int finish_connect(int fd, const sockaddr* to, socklen_t bytes, boot_clock::time_point deadline) {
  if (::connect(fd, to, bytes) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd wait{fd, POLLOUT, 0};
  int ready = 0;
  do {
    ready = ::poll(&wait, 1, ms_until(deadline));
  } while (ready < 0 && errno == EINTR);
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t error_bytes = sizeof error;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_bytes) != 0) return errno;
  return error;
}

connect_outcome connect_local(const boot_address& where, boot_clock::time_point deadline) {
  connect_outcome outcome;
  unique_fd fd{::socket(AF_UNIX, socket_flags, 0)};
  const local_name at = make_local_name(where.host);
  const int error =
      fd ? finish_connect(fd.get(), reinterpret_cast<const sockaddr*>(&at.name), at.bytes, deadline) : errno;
  if (error == 0) {
    outcome.fd = std::move(fd);
    return outcome;
  }
  outcome.why = error_text(error);
  outcome.try_again = error == EAGAIN;  // the backlog is full: the listener is there
  return outcome;
}

connect_outcome connect_tcp(const boot_address& where, boot_clock::time_point deadline) {
  connect_outcome outcome;
  int error = 0;
  const resolved list = resolve(where, false, error);
  outcome.why = list ? "no address" : ::gai_strerror(error);
  outcome.try_again = list != nullptr || error == EAI_AGAIN;
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    unique_fd fd{::socket(at->ai_family, socket_flags, at->ai_protocol)};
    error = fd ? finish_connect(fd.get(), at->ai_addr, at->ai_addrlen, deadline) : errno;
    if (error == 0 && connected_to_itself(fd.get())) error = ECONNREFUSED;
    if (error == 0) {
      outcome.fd = std::move(fd);
      return outcome;
    }
    outcome.why = error_text(error);
  }
  return outcome;
}

}  // namespace

int ms_until(boot_clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - boot_clock::now()).count();
  return static_cast<int>(std::clamp<decltype(left)>(left, 0, INT_MAX));
}

void unique_fd::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

boot_address parse_address(std::string_view text) {
  constexpr std::string_view local = "local://";
  constexpr std::string_view tcp = "tcp://";
  const auto bad = [&](const char* why) {
    return Error(status::bad_boot, "RMA_BOOT=" + std::string(text.substr(0, 200)) + ": " + why +
                                       "; valid are local://NAME and tcp://HOST:PORT");
  };
  if (text.starts_with(local)) {
    const std::string_view name = text.substr(local.size());
    if (name.size() > sizeof(sockaddr_un::sun_path) - 1) throw bad("the name is too long");
    return {.local = true, .host = std::string(name), .port = {}};
  }
  if (!text.starts_with(tcp)) throw bad("unknown kind of address");
  text.remove_prefix(tcp.size());
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) throw bad("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const bool digits = std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (host.empty()) throw bad("the host is missing");
  if (port.empty() || port.size() > 5 || !digits || std::stoi(std::string(port)) > 65535) throw bad("bad port");
  return {.local = false, .host = std::string(host), .port = std::string(port)};
}

std::string to_text(const boot_address& where) {
  if (where.local) return "local://" + where.host;
  const bool v6 = where.host.find(':') != std::string::npos;
  return "tcp://" + (v6 ? "[" + where.host + "]" : where.host) + ":" + where.port;
}

unique_fd listen_at(boot_address& where) { return where.local ? listen_local(where) : listen_tcp(where); }

connect_outcome connect_to(const boot_address& where, boot_clock::time_point deadline) {
  return where.local ? connect_local(where, deadline) : connect_tcp(where, deadline);
}

unique_fd begin_connect(const boot_address& where) noexcept {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;  // no name lookup
  addrinfo* list = nullptr;
  const int found = ::getaddrinfo(where.host.c_str(), where.port.c_str(), &hints, &list);
  if (found != 0 || list == nullptr) {
    if (found != EAI_SYSTEM) errno = EINVAL;
    return {};
  }
  unique_fd fd{::socket(list->ai_family, socket_flags, list->ai_protocol)};
  const bool begun = fd && (::connect(fd.get(), list->ai_addr, list->ai_addrlen) == 0 || errno == EINPROGRESS);
  const int error = errno;
  ::freeaddrinfo(list);
  errno = error;
  return begun ? std::move(fd) : unique_fd{};
}

std::string own_address_of(int fd) {
  sockaddr_storage name{};
  socklen_t bytes = sizeof name;
  std::array<char, NI_MAXHOST> text{};
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) return {};
  if (name.ss_family != AF_INET && name.ss_family != AF_INET6) return {};
  if (::getnameinfo(reinterpret_cast<const sockaddr*>(&name), bytes, text.data(), text.size(), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return {};
  return text.data();
}

bool peer_is_same_user(int fd) noexcept {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == ::geteuid();
}

void tune(int fd, int peer_timeout_ms) noexcept {
  const auto set = [fd](int level, int name, int value) { (void)::setsockopt(fd, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  // The kernel asks three times in that time, and gives up when it is over.
  const int every_s = std::max(1, peer_timeout_ms / 3000);
  set(IPPROTO_TCP, TCP_KEEPIDLE, every_s);
  set(IPPROTO_TCP, TCP_KEEPINTVL, every_s);
  set(IPPROTO_TCP, TCP_KEEPCNT, std::max(1, (peer_timeout_ms + 1000 * every_s - 1) / (1000 * every_s) - 1));
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, peer_timeout_ms);
}

void let_data_wait(int fd, int peer_timeout_ms) noexcept {
  const auto set = [fd](int name, int value) { (void)::setsockopt(fd, IPPROTO_TCP, name, &value, sizeof value); };
  constexpr int rto_max_ms = 44;  // TCP_RTO_MAX_MS: younger than many a libc
  set(TCP_USER_TIMEOUT, 0);
  // The kernel gives up after twice that time without an answer.
  set(rto_max_ms, std::clamp(peer_timeout_ms / 2 + 1, 1000, 120000));
}

std::string error_text(int error) { return std::generic_category().message(error); }

}  // namespace rma::boot
