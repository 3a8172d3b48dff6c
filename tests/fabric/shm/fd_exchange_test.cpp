// SPDX-License-Identifier: Apache-2.0
// Goal: the node's descriptor goes to those who know the token and to nobody else, and strangers hold nobody up.
// Method: the socket's name is known to all here, as it is to every process of the machine (/proc/net/unix).
#include "fabric/shm/fd_exchange.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "boot/socket.hpp"
#include "fabric/shm/node.hpp"
#include "fabric/shm/quiet_boot.hpp"
#include "skip.hpp"

using namespace rma;
using namespace rma::shm;
using boot::unique_fd;
using rma::test::quiet_boot;

namespace {

constexpr int patience_ms = 20000;

/// A descriptor to give away, and its server in a thread of its own.
class giver {
 public:
  explicit giver(std::size_t count)
      : fd_(::memfd_create("fd_exchange_test", MFD_CLOEXEC)),
        offer_(fd_.get(), {1234, 0x5000, 4096}),
        serving_(std::async(std::launch::async, [this, count] { offer_.serve(count, boot_, patience_ms); })) {}

  [[nodiscard]] const std::string& invitation() const { return offer_.invitation(); }
  [[nodiscard]] std::string name() const { return invitation().substr(0, invitation().find(' ')); }
  [[nodiscard]] std::string token() const { return invitation().substr(invitation().find(' ') + 1); }
  [[nodiscard]] bool is_mine(int fd) const {
    struct stat a {};
    struct stat b {};
    return ::fstat(fd_.get(), &a) == 0 && ::fstat(fd, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
  }
  void ends_well() { CHECK_NOTHROW(serving_.get()); }

 private:
  unique_fd fd_;
  quiet_boot boot_;
  fd_offer offer_;
  std::future<void> serving_;
};

sockaddr_un address_of(const std::string& name, socklen_t& bytes) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

unique_fd connect_to_name(const std::string& name) {
  socklen_t bytes = 0;
  const sockaddr_un address = address_of(name, bytes);
  unique_fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), bytes) != 0) return {};
  return fd;
}

void say(const unique_fd& to, const std::string& text) {
  (void)!::send(to.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

/// True if the other side closes the connection without having said anything.
bool cut_off(const unique_fd& fd) {
  pollfd wait{fd.get(), POLLIN, 0};
  char byte = 0;
  return ::poll(&wait, 1, patience_ms) == 1 && ::recv(fd.get(), &byte, 1, 0) <= 0;
}

void take(giver& from) {
  quiet_boot boot;
  const accepted_fd got = accept_fd(from.invitation(), boot, 0, patience_ms);
  const unique_fd mine(got.fd);
  CHECK(from.is_mine(mine.get()));
  CHECK((::fcntl(mine.get(), F_GETFD) & FD_CLOEXEC) != 0);
  CHECK(got.owner.pid == 1234);
  CHECK(got.owner.base == 0x5000);
  CHECK(got.owner.total_bytes == 4096);
}

std::pair<status, std::string> refusal_of_taking(const std::string& invitation, int timeout_ms = patience_ms) {
  quiet_boot boot;
  try {
    const unique_fd got(accept_fd(invitation, boot, 0, timeout_ms).fd);
    return {status::done, ""};
  } catch (const Error& e) {
    return {e.code(), e.what()};
  }
}

status end_of_serving(boot::client& boot, int timeout_ms) {
  fd_offer offer(0, {});
  try {
    offer.serve(1, boot, timeout_ms);
    return status::done;
  } catch (const Error& e) {
    return e.code();
  }
}

}  // namespace

TEST_CASE("several ranks get the descriptor", "[fabric][shm][fd_exchange]") {
  giver node(3);
  for (int i = 0; i < 3; ++i) take(node);
  node.ends_well();
}

TEST_CASE("invitations differ", "[fabric][shm][fd_exchange]") {
  const fd_offer a(0, {});
  const fd_offer b(0, {});
  CHECK(a.invitation() != b.invitation());
  CHECK(a.invitation().size() == b.invitation().size());
}

TEST_CASE("a stranger with a wrong token is cut off, others are served", "[fabric][shm][fd_exchange]") {
  giver node(1);
  std::string almost = node.token();
  almost.back() = almost.back() == '0' ? '1' : '0';
  for (const std::string& wrong : {std::string(32, 'x'), almost, std::string("GET / HTTP/1.1\r\n\r\n"),
                                   node.token().substr(1), std::string(1 << 16, '\0')}) {
    CAPTURE(wrong.substr(0, 40));
    const unique_fd stranger = connect_to_name(node.name());
    REQUIRE(stranger);
    say(stranger, wrong);
    CHECK(cut_off(stranger));
  }
  take(node);
  node.ends_well();
}

TEST_CASE("silent and slow callers hold nobody up", "[fabric][shm][fd_exchange]") {
  giver node(2);
  std::vector<unique_fd> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect_to_name(node.name()));
  const unique_fd slow = connect_to_name(node.name());
  say(slow, node.token().substr(0, 10));
  const unique_fd gone_at_once = connect_to_name(node.name());
  (void)::shutdown(gone_at_once.get(), SHUT_RDWR);
  take(node);
  say(slow, node.token().substr(10));  // in pieces it is as good
  char answer[sizeof(mapping_owner)];
  CHECK(::recv(slow.get(), answer, sizeof answer, MSG_WAITALL) == static_cast<ssize_t>(sizeof answer));
  node.ends_well();
  for (const unique_fd& each : silent) CHECK(cut_off(each));
}

TEST_CASE("another user gets nothing, even with the token", "[fabric][shm][fd_exchange]") {
  if (::geteuid() != 0) return rma::test::skip("only root can become somebody else");
  const unique_fd fd(::memfd_create("fd_exchange_test", MFD_CLOEXEC));
  fd_offer offer(fd.get(), {1, 2, 3});
  const std::string invitation = offer.invitation();
  // Forked before there is a second thread.
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto cut = invitation.find(' ');
    if (::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    const unique_fd socket = connect_to_name(invitation.substr(0, cut));
    if (!socket) ::_exit(3);
    say(socket, invitation.substr(cut + 1));
    const char done = 1;
    (void)!::write(ready[1], &done, 1);
    ::_exit(cut_off(socket) ? 0 : 1);
  }
  char done = 0;
  REQUIRE(::read(ready[0], &done, 1) == 1);
  quiet_boot boot;
  auto serving = std::async(std::launch::async, [&] { offer.serve(1, boot, patience_ms); });
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
  const unique_fd mine(accept_fd(invitation, boot, 0, patience_ms).fd);
  CHECK_NOTHROW(serving.get());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_CASE("a death, an abort and the time-out end the serving", "[fabric][shm][fd_exchange]") {
  quiet_boot death(1);
  CHECK(end_of_serving(death, patience_ms) == status::peer_failed);
  quiet_boot abort(-1, status::job_aborted);
  CHECK(end_of_serving(abort, patience_ms) == status::job_aborted);
  quiet_boot nobody;
  CHECK(end_of_serving(nobody, 1) == status::bad_boot);
}

TEST_CASE("an invitation of nobody is an error", "[fabric][shm][fd_exchange]") {
  const auto [code, text] = refusal_of_taking("rma-node-that-is-not-there 0123");
  CHECK(code == status::bad_boot);
  CHECK(text.find("Connection refused") != std::string::npos);
}

TEST_CASE("a host that gives no descriptor is an error", "[fabric][shm][fd_exchange]") {
  const std::string name = "rma-test-" + boot::random_hex(8);
  socklen_t bytes = 0;
  const sockaddr_un address = address_of(name, bytes);
  const unique_fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), bytes) == 0);
  REQUIRE(::listen(listener.get(), 4) == 0);
  const std::string answer = GENERATE(std::string(), std::string("short"), std::string(sizeof(mapping_owner), 'x'));
  auto host = std::async(std::launch::async, [&] {
    const unique_fd guest(::accept(listener.get(), nullptr, nullptr));
    say(guest, answer);
    (void)::shutdown(guest.get(), SHUT_WR);
    char rest[64];
    while (::recv(guest.get(), rest, sizeof rest, 0) > 0) {}
  });
  CHECK(refusal_of_taking(name + " token").first == status::bad_boot);
  host.get();
}
