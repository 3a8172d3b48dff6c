// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/fd_exchange.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "boot/socket.hpp"
#include "core/clock.hpp"

namespace rma::shm {
namespace {

constexpr std::size_t token_hex = 32;
constexpr std::size_t callers_max = 256;

std::string random_hex(std::size_t digits) {
  std::vector<unsigned char> bytes(digits / 2);
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw Error(status::bad_boot, "the system gives no random numbers");
  }
  std::string hex;
  for (const unsigned char b : bytes) hex += fmt::format("{:02x}", b);
  return hex;
}

std::pair<sockaddr_un, socklen_t> abstract_address(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof(address.sun_path) - 1));
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

bool same_user(int socket) noexcept {
  ucred who{};
  socklen_t bytes = sizeof who;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 && who.uid == ::geteuid();
}

/// A message of an owner's record, with room for one descriptor.
struct fd_message {
  iovec data;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr head{};

  explicit fd_message(mapping_owner& owner) noexcept : data{&owner, sizeof owner} {
    head.msg_iov = &data;
    head.msg_iovlen = 1;
    head.msg_control = control.data();
    head.msg_controllen = control.size();
  }
  fd_message(const fd_message&) = delete;
  fd_message& operator=(const fd_message&) = delete;
};

bool send_fd(int socket, int fd, mapping_owner owner) noexcept {
  fd_message message(owner);
  cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return ::sendmsg(socket, &message.head, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof owner);
}

/// Receives the message of `send_fd`. On failure it returns false, with errno 0 if the other side has closed the
/// connection.
bool receive_fd(int socket, accepted_fd& got) noexcept {
  fd_message message(got.owner);
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message.head, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n == 0) errno = 0;
  const cmsghdr* const head = n == static_cast<ssize_t>(sizeof got.owner) ? CMSG_FIRSTHDR(&message.head) : nullptr;
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) return false;
  std::memcpy(&got.fd, CMSG_DATA(head), sizeof got.fd);
  return true;
}

struct caller {
  int socket;
  std::string said;
};

/// Reads the caller's token. True if the caller is finished (served or dropped).
bool hear(caller& c, const std::string& token, int fd, const mapping_owner& owner, std::size_t& served) noexcept {
  char text[token_hex];
  const auto n = ::recv(c.socket, text, token_hex - c.said.size(), MSG_DONTWAIT);
  if (n <= 0) return n == 0 || (errno != EAGAIN && errno != EINTR);
  c.said.append(text, static_cast<std::size_t>(n));
  if (token.compare(0, c.said.size(), c.said) != 0) return true;
  if (c.said.size() < token.size()) return false;
  if (send_fd(c.socket, fd, owner)) ++served;
  return true;
}

/// True if the socket becomes readable before the deadline, even if signals arrive.
bool is_readable(int socket, std::int64_t until_ns) noexcept {
  for (;;) {
    const std::int64_t left_ns = until_ns - detail::clock_ns();
    pollfd wait{socket, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left_ns + 999'999, 0) / 1'000'000));
    if (ready >= 0 || left_ns <= 0) return ready > 0;
  }
}

/// Repeats connect or send after signals; these hardly wait unless many callers come at once.
template <class Call>
auto repeated(std::int64_t until_ns, Call call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR && detail::clock_ns() < until_ns) result = call();
  return result;
}

/// A long wait in the start is reported to the job's server, which would otherwise blame this rank for the delay of the
/// others.
std::int64_t told_after_ns(std::int64_t timeout_ns) noexcept { return timeout_ns / 4; }

}  // namespace

fd_offer::fd_offer(int fd, mapping_owner owner) : fd_(fd), owner_(owner), token_(random_hex(token_hex)) {
  const std::string name = "rma-node-" + random_hex(32);
  invitation_ = name + " " + token_;
  const auto [address, bytes] = abstract_address(name);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener_ < 0 || ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), bytes) != 0 ||
      ::listen(listener_, 128) != 0) {
    throw Error(status::bad_boot,
                fmt::format("cannot open a Unix socket for the node's ranks: {}", std::strerror(errno)));
  }
}

fd_offer::~fd_offer() {
  if (listener_ >= 0) ::close(listener_);
}

void fd_offer::serve(std::size_t count, boot::client& boot, int timeout_ms) {
  std::vector<caller> callers;
  std::size_t served = 0;
  const std::int64_t timeout_ns = std::int64_t{timeout_ms} * 1'000'000;
  const auto begin = detail::clock_ns();
  bool is_told = false;
  while (served < count) {
    std::vector<pollfd> wait{{listener_, POLLIN, 0}, {boot.event_fd(), POLLIN, 0}};
    for (const caller& c : callers) wait.push_back({c.socket, POLLIN, 0});
    ::poll(wait.data(), wait.size(), 100);
    while (callers.size() < callers_max) {
      const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (socket < 0) break;
      if (same_user(socket))
        callers.push_back({socket, {}});
      else
        ::close(socket);
    }
    std::erase_if(callers, [&](caller& c) {
      const bool over = hear(c, token_, fd_, owner_, served);
      if (over) ::close(c.socket);
      return over;
    });
    std::vector<int> died;
    const status news = boot.poll_events(died);
    const auto waited_ns = detail::clock_ns() - begin;
    if (!is_told && waited_ns > told_after_ns(timeout_ns)) {
      is_told = true;
      boot.begin_step("waits for ranks of its node to take its memory", true);
    }
    if (!ok(news) || !died.empty() || waited_ns > timeout_ns) {
      for (const caller& c : callers) ::close(c.socket);
      if (!died.empty())
        throw Error(status::peer_failed, fmt::format("rank {} died while the job started", died[0]), died[0]);
      raise_job_ended(boot, ok(news) ? status::bad_boot : news);
    }
  }
  for (const caller& c : callers) ::close(c.socket);
}

accepted_fd accept_fd(const std::string& invitation, boot::client& boot, int giver, int timeout_ms) {
  const auto begin_ns = detail::clock_ns();
  const std::int64_t timeout_ns = std::int64_t{timeout_ms} * 1'000'000;
  const auto cut = invitation.find(' ');
  const auto [address, bytes] = abstract_address(std::string_view(invitation).substr(0, cut));
  const std::string token = invitation.substr(cut + 1);
  const boot::unique_fd line(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  ::setsockopt(line.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  const auto connect = [&] { return ::connect(line.get(), reinterpret_cast<const sockaddr*>(&address), bytes); };
  const auto send = [&] { return ::send(line.get(), token.data(), token.size(), MSG_NOSIGNAL); };
  const auto until_ns = begin_ns + timeout_ns;
  bool given = repeated(until_ns, connect) == 0;
  bool in_time = given || errno != EAGAIN;  // the backlog is full
  given = given && same_user(line.get()) && repeated(until_ns, send) == static_cast<ssize_t>(token.size());
  if (given && !is_readable(line.get(), begin_ns + told_after_ns(timeout_ns))) {
    boot.begin_step(fmt::format("waits for rank {} to hand out the memory of their node", giver), true);
    in_time = is_readable(line.get(), until_ns);
  }
  if (!in_time) raise_job_ended(boot, status::bad_boot);
  accepted_fd got;
  if (!given || !receive_fd(line.get(), got)) {
    throw Error(status::bad_boot, fmt::format("cannot get the node's memory from its first rank, {}: {}", giver,
                                              errno == 0 ? "it has closed the connection" : std::strerror(errno)));
  }
  return got;
}

}  // namespace rma::shm
