// SPDX-License-Identifier: Apache-2.0
// strangers_program, on several hosts: no socket of the job listens on all addresses; and while all ranks work, garbage
// is sent to each that listens, and half of something by connections that stay. The job must go on, and take no memory
// for it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <rma/rma.hpp>

namespace {

constexpr int connections = 300;  // to each socket, by each rank
constexpr int staying_max = 20;   // limit of those that say little, and stay
constexpr std::size_t words = 1000;
constexpr std::size_t growth_kib_max = 32 * 1024;

std::size_t memory_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string word; file >> word;) {
    std::size_t kib = 0;
    if (word == "VmRSS:" && file >> kib) return kib;
  }
  return 0;
}

/// The addresses at which this host's TCP sockets listen. Throws if one listens on all addresses.
std::vector<sockaddr_in> listening() {
  std::vector<sockaddr_in> found;
  for (const char* const name : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(name);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state;
      fields >> number >> local >> remote >> state;
      if (state != "0A") continue;
      const auto cut = local.find(':');
      if (local.find_first_not_of('0') >= cut) throw std::runtime_error("a socket listens on all addresses: " + local);
      if (cut != 8) throw std::runtime_error("a socket listens at an IPv6 address, which no host has: " + local);
      sockaddr_in at{};
      at.sin_family = AF_INET;
      at.sin_addr.s_addr = static_cast<in_addr_t>(std::stoul(local.substr(0, cut), nullptr, 16));
      at.sin_port = htons(static_cast<std::uint16_t>(std::stoul(local.substr(cut + 1), nullptr, 16)));
      found.push_back(at);
    }
  }
  return found;
}

/// One round of puts around the ring; throws if it does not come to the right end.
void work(rma::Team& world, rma::Window<std::uint64_t>& win, std::uint64_t round) {
  const std::vector<std::uint64_t> sent(words, round);
  win.fence();
  win.put(std::span<const std::uint64_t>(sent), (world.rank() + 1) % world.size(), 0);
  win.fence(rma::no_succeed);
  if (std::count(&win[0], &win[0] + words, round) != static_cast<std::ptrdiff_t>(words))
    throw std::runtime_error("a round went wrong");
}

class strangers {
 public:
  explicit strangers(unsigned seed) : draw_(seed) {}
  strangers(const strangers&) = delete;
  strangers& operator=(const strangers&) = delete;
  ~strangers() {
    for (const int each : staying_) ::close(each);
  }

  /// Sends garbage to `at`; every now and then little of it, and stays.
  void call(const sockaddr_in& at) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool stays = staying_.size() < staying_max && draw_() % 4 == 0;
    std::string garbage(stays ? 1 + draw_() % 6 : 1 + draw_() % 4096, '\0');
    for (char& byte : garbage) byte = static_cast<char>(draw_());
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0)
      (void)!::send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    if (stays)
      staying_.push_back(fd);
    else
      ::close(fd);
  }

 private:
  std::mt19937 draw_;
  std::vector<int> staying_;
};

int play(rma::Runtime& runtime) {
  rma::Team world = runtime.world();
  auto win = rma::Window<std::uint64_t>::allocate(world, words);
  work(world, win, 1);
  const std::vector<sockaddr_in> sockets = listening();
  const int fewest = world.allreduce(static_cast<int>(sockets.size()), rma::min);
  if (fewest == 0) throw std::runtime_error("nothing listens on some host: there is nothing to see here");
  strangers crowd(static_cast<unsigned>(world.rank()) + 1);
  const std::size_t before = memory_kib();
  for (int i = 0; i < connections; ++i) {
    for (const sockaddr_in& at : sockets) crowd.call(at);
    if (i % 10 == 0) work(world, win, static_cast<std::uint64_t>(i) + 2);
  }
  work(world, win, 1);
  const std::size_t after = memory_kib();
  std::printf("rank %d: %zu sockets, %zu KiB before, %zu KiB after\n", world.rank(), sockets.size(), before, after);
  if (after > before + growth_kib_max) throw std::runtime_error("memory has grown too much");
  world.barrier();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime runtime(argc, argv);
    return play(runtime);
  } catch (const std::exception& e) {
    std::printf("strangers_program: WRONG: %s\n", e.what());
    return 1;
  }
}
