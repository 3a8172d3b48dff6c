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

bool send_fd(int socket, int fd, const mapping_owner& owner) noexcept {
  iovec data{const_cast<mapping_owner*>(&owner), sizeof owner};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof owner);
}

struct caller {
  int socket;
  std::string said;
};

/// Reads what the caller has to say. True if it is done with (served or dropped).
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

/// Receives what was sent, whatever signals arrive: with a time-out the system never goes on by itself after one.
ssize_t receive(int socket, msghdr& message, int timeout_ms) noexcept {
  const auto until = detail::clock_ns() + std::int64_t{timeout_ms} * 1'000'000;
  for (;;) {
    const ssize_t n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (n >= 0 || errno != EINTR) return n;
    if (detail::clock_ns() <= until) continue;
    errno = ETIMEDOUT;
    return n;
  }
}

/// The same for connect and send, which wait for next to nothing.
template <class Call>
auto repeated(Call call) noexcept {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

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
  const auto until = detail::clock_ns() + std::int64_t{timeout_ms} * 1'000'000;
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
    if (!ok(news) || !died.empty() || detail::clock_ns() > until) {
      for (const caller& c : callers) ::close(c.socket);
      if (!died.empty())
        throw Error(status::peer_failed, fmt::format("rank {} died while the job started", died[0]), died[0]);
      if (!ok(news)) raise_job_ended(boot, news);
      throw Error(status::bad_boot, fmt::format("{} of {} ranks of this node did not appear within {} ms",
                                                count - served, count, timeout_ms));
    }
  }
  for (const caller& c : callers) ::close(c.socket);
}

accepted_fd accept_fd(const std::string& invitation, int timeout_ms) {
  const auto cut = invitation.find(' ');
  const auto [address, bytes] = abstract_address(std::string_view(invitation).substr(0, cut));
  const std::string token = invitation.substr(cut + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  accepted_fd got;
  iovec data{&got.owner, sizeof got.owner};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto connect = [&] { return ::connect(socket, reinterpret_cast<const sockaddr*>(&address), bytes); };
  const auto send = [&] { return ::send(socket, token.data(), token.size(), MSG_NOSIGNAL); };
  const bool heard = repeated(connect) == 0 && same_user(socket) &&
                     repeated(send) == static_cast<ssize_t>(token.size()) &&
                     receive(socket, message, timeout_ms) == static_cast<ssize_t>(sizeof got.owner);
  const int error = errno;
  ::close(socket);
  const cmsghdr* const head = heard ? CMSG_FIRSTHDR(&message) : nullptr;
  if (head == nullptr || head->cmsg_type != SCM_RIGHTS) {
    throw Error(status::bad_boot,
                fmt::format("cannot get the node's memory from its first rank: {}", std::strerror(error)));
  }
  std::memcpy(&got.fd, CMSG_DATA(head), sizeof got.fd);
  return got;
}

}  // namespace rma::shm
