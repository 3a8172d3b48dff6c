// SPDX-License-Identifier: Apache-2.0
// sockets METRIC BYTES: what two processes take that send to each other over a TCP connection of the loopback device,
// by blocking send and recv alone: the bound of everything that goes by TCP, for perf/compare_tcp. Prints ns for each
// message. `ping_pong`: one way. `stream`: 100 messages and a reply.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int messages_per_reply = 100;
constexpr int rounds = 5;  // the best of them

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::_Exit(1);
}

void send_all(int line, const std::vector<char>& data) {
  for (std::size_t sent = 0; sent < data.size();) {
    const ssize_t n = ::send(line, data.data() + sent, data.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) fail("send");
    sent += static_cast<std::size_t>(n);
  }
}

void receive_all(int line, std::vector<char>& data) {
  for (std::size_t got = 0; got < data.size();) {
    const ssize_t n = ::recv(line, data.data() + got, data.size() - got, 0);
    if (n <= 0) fail("recv");
    got += static_cast<std::size_t>(n);
  }
}

/// Two ends of a connection over the loopback device.
std::array<int, 2> connection() {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  const int client = ::socket(AF_INET, SOCK_STREAM, 0);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (listener < 0 || client < 0 || ::bind(listener, address, sizeof at) != 0 || ::listen(listener, 1) != 0 ||
      ::getsockname(listener, address, &bytes) != 0 || ::connect(client, address, sizeof at) != 0)
    fail("connection");
  const int server = ::accept(listener, nullptr, nullptr);
  if (server < 0) fail("accept");
  const int yes = 1;
  for (const int line : {client, server}) (void)::setsockopt(line, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  ::close(listener);
  return {client, server};
}

void exchange(int line, bool first, int messages, std::vector<char>& data) {
  std::vector<char> reply(messages == 1 ? data.size() : 1);
  if (first) {
    for (int i = 0; i < messages; ++i) send_all(line, data);
    receive_all(line, reply);
  } else {
    for (int i = 0; i < messages; ++i) receive_all(line, data);
    send_all(line, reply);
  }
}

double best_ns(int line, bool first, int messages, std::vector<char>& data, int turns) {
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < turns; ++i) exchange(line, first, messages, data);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    const double each = took.count() / turns / (messages == 1 ? 2 : messages);
    if (round == 0 || each < best) best = each;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view metric = argc == 3 ? argv[1] : "";
  if (metric != "ping_pong" && metric != "stream") {
    std::fputs("sockets ping_pong|stream BYTES\n", stderr);
    return 2;
  }
  std::vector<char> data(std::stoul(argv[2]));
  const int messages = metric == "stream" ? messages_per_reply : 1;
  const int turns = static_cast<int>(std::max<std::size_t>(5, 2'000'000 / (data.size() + 200) / messages));
  const auto lines = connection();
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  const double ns = best_ns(lines[child == 0 ? 1 : 0], child != 0, messages, data, turns);
  if (child == 0) return 0;
  std::printf("%.1f\n", ns);
  int ended = 0;
  return ::waitpid(child, &ended, 0) == child && ended == 0 ? 0 : 1;
}
