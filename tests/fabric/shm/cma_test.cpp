// SPDX-License-Identifier: Apache-2.0
// Goal: cma_copy moves the listed bytes in order, whatever the two lists look like, and says what is in the way.
// Method: a forked child has the same addresses with contents of its own; random lists, against a plain copy.
#include "fabric/shm/cma.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "skip.hpp"

using namespace rma;
using namespace rma::shm;

namespace {

constexpr std::size_t room_bytes = std::size_t{1} << 16;

std::byte* new_room() {
  void* const at = ::mmap(nullptr, room_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(at != MAP_FAILED);
  return static_cast<std::byte*>(at);
}

/// A child that keeps `room` as it was, filled with `fill`, until the end of the scope.
class neighbor {
 public:
  neighbor(std::byte* room, int fill) {
    int ready[2];
    int over[2];
    REQUIRE(::pipe(ready) == 0);
    REQUIRE(::pipe(over) == 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::memset(room, fill, room_bytes);
      ::close(over[1]);
      char byte = 1;
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(over[0], &byte, 1);
      ::_exit(0);
    }
    char byte = 0;
    REQUIRE(::read(ready[0], &byte, 1) == 1);
    ::close(ready[0]);
    ::close(ready[1]);
    ::close(over[0]);
    over_ = over[1];
  }
  ~neighbor() { end(); }
  neighbor(const neighbor&) = delete;
  neighbor& operator=(const neighbor&) = delete;

  void end() {
    if (over_ < 0) return;
    ::close(over_);
    over_ = -1;
    ::waitpid(static_cast<pid_t>(pid_), nullptr, 0);
  }
  [[nodiscard]] std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
  int over_ = -1;
};

/// Lengths that add up to `total`, some of them zero.
std::vector<std::size_t> random_cut(std::mt19937& random, std::size_t total, std::size_t longest) {
  std::vector<std::size_t> parts;
  while (total > 0) {
    const std::size_t part = std::min(total, std::uniform_int_distribution<std::size_t>(0, longest)(random));
    parts.push_back(part);
    total -= part;
  }
  if (random() % 2 == 0) parts.push_back(0);
  return parts;
}

/// Places for the parts, one after the other with gaps.
std::vector<std::size_t> random_places(std::mt19937& random, const std::vector<std::size_t>& parts) {
  std::vector<std::size_t> places;
  std::size_t at = 0;
  for (const std::size_t part : parts) {
    at += random() % 5;
    places.push_back(at);
    at += part;
  }
  return places;
}

struct lists {
  std::vector<fabric::local_slice> local;
  std::vector<fabric::remote_slice> remote;
};

}  // namespace

TEST_CASE("random lists of slices, written and read back", "[fabric][shm][cma]") {
  std::byte* const room = new_room();
  const neighbor other(room, 0);
  std::mt19937 random(77);
  std::vector<std::byte> theirs(room_bytes, std::byte{0});  // the wanted content of the neighbor's room
  std::vector<std::byte> mine(room_bytes);
  const fabric::local_slice all{mine.data(), room_bytes};
  const fabric::remote_slice whole{reinterpret_cast<std::uint64_t>(room), room_bytes};
  if (cma_copy(cma_direction::read, other.pid(), {&all, 1}, {&whole, 1}) == status::not_supported)
    return rma::test::skip("the system forbids process_vm_readv");
  CHECK(mine == theirs);
  for (int turn = 0; turn < 200; ++turn) {
    CAPTURE(turn);
    const bool write = turn % 2 == 0;
    const std::size_t bytes = random() % 30000;
    const auto parts = random_cut(random, bytes, turn % 3 == 0 ? 20000 : 300);  // more than one call takes, too
    const auto places = random_places(random, parts);
    const auto their_parts = random_cut(random, bytes, turn % 5 == 0 ? 20000 : 200);
    const auto their_places = random_places(random, their_parts);
    for (std::byte& b : mine) b = static_cast<std::byte>(random());
    lists l;
    std::vector<std::size_t> flat_mine;
    std::vector<std::size_t> flat_theirs;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      l.local.push_back({mine.data() + places[i], parts[i]});
      for (std::size_t b = 0; b < parts[i]; ++b) flat_mine.push_back(places[i] + b);
    }
    for (std::size_t i = 0; i < their_parts.size(); ++i) {
      l.remote.push_back({reinterpret_cast<std::uint64_t>(room + their_places[i]), their_parts[i]});
      for (std::size_t b = 0; b < their_parts[i]; ++b) flat_theirs.push_back(their_places[i] + b);
    }
    std::vector<std::byte> expected = mine;
    for (std::size_t b = 0; b < bytes; ++b) {
      if (write) {
        theirs[flat_theirs[b]] = mine[flat_mine[b]];
      } else {
        expected[flat_mine[b]] = theirs[flat_theirs[b]];
      }
    }
    const auto direction = write ? cma_direction::write : cma_direction::read;
    REQUIRE(cma_copy(direction, other.pid(), l.local, l.remote) == status::done);
    REQUIRE(mine == expected);
    REQUIRE(cma_copy(cma_direction::read, other.pid(), {&all, 1}, {&whole, 1}) == status::done);
    REQUIRE(mine == theirs);
  }
  ::munmap(room, room_bytes);
}

TEST_CASE("nothing at all is done at once", "[fabric][shm][cma]") {
  const fabric::local_slice empty{nullptr, 0};
  CHECK(cma_copy(cma_direction::read, 0, {}, {}) == status::done);
  CHECK(cma_copy(cma_direction::write, 0, {&empty, 1}, {}) == status::done);
}

TEST_CASE("a range that is not mapped there, and a process that is gone", "[fabric][shm][cma]") {
  std::byte* const room = new_room();
  neighbor other(room, 3);
  std::vector<std::byte> mine(8192);
  const fabric::local_slice here{mine.data(), mine.size()};
  const fabric::remote_slice good{reinterpret_cast<std::uint64_t>(room), mine.size()};
  if (cma_copy(cma_direction::read, other.pid(), {&here, 1}, {&good, 1}) == status::not_supported) {
    ::munmap(room, room_bytes);
    return rma::test::skip("the system forbids process_vm_readv");
  }
  const fabric::remote_slice nowhere{4096, mine.size()};  // below mmap_min_addr
  CHECK(cma_copy(cma_direction::read, other.pid(), {&here, 1}, {&nowhere, 1}) == status::transfer_failed);
  CHECK(cma_copy(cma_direction::write, other.pid(), {&here, 1}, {&nowhere, 1}) == status::transfer_failed);
  other.end();
  CHECK(cma_copy(cma_direction::read, other.pid(), {&here, 1}, {&good, 1}) == status::peer_failed);
  ::munmap(room, room_bytes);
}
