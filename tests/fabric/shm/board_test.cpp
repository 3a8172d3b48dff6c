// SPDX-License-Identifier: Apache-2.0
// Goal: the ranks of a node see one memory, whether they are threads or processes; shortage, differing settings and
// deaths are seen.
// Method: ranks as threads; ranks as forked children, of which one ends without leaving.
#include "fabric/shm/board.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstring>
#include <thread>

#include "fabric/shm/node.hpp"

using namespace rma;
using namespace rma::shm;
using namespace rma::shm::test;

namespace {

std::vector<int> first_ranks(int size) {
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::uint64_t blocks_of(const board& node) {
  struct stat found {};
  ::fstat(node.descriptor(), &found);
  return static_cast<std::uint64_t>(found.st_blocks);
}

/// Where rank `r` puts a word into the segment of rank `to`.
word64& mailbox_at(const board& node, std::size_t to, std::size_t r) {
  return reinterpret_cast<word64*>(node.segment(to))[r];
}

}  // namespace

TEST_CASE("threads of one process share one mapping", "[fabric][shm][board]") {
  constexpr int size = 3;
  boot::test::world ranks(size);
  struct seen {
    const std::byte* first_segment = nullptr;
    bool right = true;
  };
  const auto found = ranks.run([&](boot::client& me) {
    const auto index = static_cast<std::size_t>(me.rank());
    board node(me, settings_of(small), first_ranks(size), index);
    seen s{node.segment(0), true};
    s.right = ok(node.populate(0, 4096)) && ok(me.fence());
    for (std::size_t i = 0; i < node.size(); ++i) {
      s.right = s.right && node.same_process(i) && node.look_at(i) == presence::alive;
      mailbox_at(node, i, index).store(100 * i + index + 1);
    }
    s.right = ok(me.fence()) && s.right;
    for (std::size_t i = 0; i < node.size(); ++i)
      s.right = s.right && mailbox_at(node, index, i).load() == 100 * index + i + 1;
    s.right = ok(me.fence()) && s.right;
    node.detach(true);
    s.right = ok(me.fence()) && s.right;
    for (std::size_t i = 0; i < node.size(); ++i) s.right = s.right && node.look_at(i) == presence::left;
    (void)me.fence();
    return s;
  });
  for (const seen& s : found) {
    CHECK(s.right);
    CHECK(s.first_segment == found[0].first_segment);
  }
}

TEST_CASE("a rank that goes without leaving counts as dead", "[fabric][shm][board]") {
  boot::test::world ranks(2);
  const auto found = ranks.run([&](boot::client& me) {
    auto node = std::make_unique<board>(me, settings_of(small), first_ranks(2), static_cast<std::size_t>(me.rank()));
    (void)me.fence();
    if (me.rank() == 1) node.reset();
    (void)me.fence();
    return me.rank() == 1 ? presence::dead : node->look_at(1);
  });
  CHECK(found[0] == presence::dead);
}

TEST_CASE("processes share the memory and see each other's end", "[fabric][shm][board]") {
  const std::string key = boot::random_hex(32);
  boot::server jobs({.size = 2, .key = key});
  // The child ends without a word once it has its answer: all destructors are left out.
  const pid_t child = ::fork();
  if (child == 0) {
    const auto me = boot::join(boot::test::options_for(jobs, 1, 2, key));
    board node(*me, settings_of(small), first_ranks(2), 1);
    const bool good = ok(node.populate(8192, 4096)) && !node.same_process(0);
    reinterpret_cast<word64*>(node.segment(1) + 8192)->store(good ? 41 : 1);
    (void)me->fence();
    (void)me->fence();
    ::_exit(reinterpret_cast<word64*>(node.segment(1) + 8192)->load() == 42 ? 0 : 1);
  }
  jobs.start();
  const auto me = boot::join(boot::test::options_for(jobs, 0, 2, key));
  board node(*me, settings_of(small), first_ranks(2), 0);
  REQUIRE(me->fence() == status::done);
  CHECK_FALSE(node.same_process(1));
  CHECK(node.slot(1).pid == static_cast<std::uint32_t>(child));
  CHECK(node.look_at(1) == presence::alive);
  word64& word = *reinterpret_cast<word64*>(node.segment(1) + 8192);
  CHECK(word.load() == 41);
  word.store(42);
  (void)me->fence();
  int how = 0;
  REQUIRE(::waitpid(child, &how, 0) == child);
  CHECK((WIFEXITED(how) && WEXITSTATUS(how) == 0));
  CHECK(node.look_at(1) == presence::dead);
  CHECK(node.look_at(1) == presence::dead);  // and stays so
  me->finalize();
}

TEST_CASE("ranks that lay out their node differently are told so", "[fabric][shm][board]") {
  boot::test::world ranks(2);
  const auto found = ranks.run([&](boot::client& me) -> std::string {
    auto values = small;
    if (me.rank() == 1) values["RMA_SEGMENT_BYTES"] = "32M";
    try {
      const board node(me, settings_of(values), first_ranks(2), static_cast<std::size_t>(me.rank()));
      return "";
    } catch (const Error& e) {
      return e.code() == status::bad_boot ? e.what() : "another code";
    }
  });
  CHECK(found[0].empty());
  CHECK(found[1].find("RMA_SEGMENT_BYTES") != std::string::npos);
}

TEST_CASE("memory is taken when asked for, zeroed, and given back", "[fabric][shm][board]") {
  lone_board alone;
  board& node = *alone.node;
  CHECK((::fcntl(node.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  const std::uint64_t before = blocks_of(node);
  constexpr std::size_t bytes = 1 << 20;
  REQUIRE(node.populate(4096, bytes) == status::done);
  CHECK(blocks_of(node) - before >= bytes / 512);
  std::byte* const at = node.segment(0) + 4096;
  CHECK(std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; }));
  std::memset(at, 0x5a, bytes);
  node.depopulate(4096, bytes);
  CHECK(blocks_of(node) == before);
  REQUIRE(node.populate(4096, bytes) == status::done);
  CHECK(std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("more address space than there is is refused with advice", "[fabric][shm][board]") {
  const std::map<std::string, std::string> huge{{"RMA_SEGMENT_BYTES", "128T"}};
  try {
    const lone_board alone(huge);
    FAIL("128 TiB were mapped");
  } catch (const Error& e) {
    CHECK(e.code() == status::out_of_memory);
    CHECK(std::string(e.what()).find("RMA_SEGMENT_BYTES") != std::string::npos);
  }
}

// Break: multiply without a look at the product.
TEST_CASE("more bytes than a number holds are refused with advice", "[fabric][shm][board]") {
  const std::map<std::string, std::string> huge{{"RMA_SEGMENT_BYTES", "128T"}};
  boot::test::world one(1);
  const auto me = boot::join(one.options_of(0));
  try {
    const board node(*me, settings_of(huge), first_ranks(1 << 17), 0);
    FAIL("2^64 bytes were mapped");
  } catch (const Error& e) {
    CHECK(e.code() == status::out_of_memory);
    CHECK(std::string(e.what()) ==
          "131072 ranks on one node with 140737488355328 bytes each are more than it can map; "
          "lower RMA_SEGMENT_BYTES");
  }
  me->finalize();
}

TEST_CASE("a doorbell that is armed is rung once", "[fabric][shm][board]") {
  lone_board alone;
  word32& bell = alone.node->slot(0).doorbell;
  alone.node->ring_doorbell(0);
  CHECK(bell.load() == 0);
  bell.store(1);
  alone.node->ring_doorbell(0);
  CHECK(bell.load() == 0);
}

TEST_CASE("ranks of the node are found by their world rank", "[fabric][shm][board]") {
  boot::test::world ranks(2);
  const auto found = ranks.run([&](boot::client& me) {
    const board node(me, settings_of(small), {0, 1}, static_cast<std::size_t>(me.rank()));
    const bool right =
        node.index_of(0) == 0 && node.index_of(1) == 1 && node.index_of(2) == 2 && node.index_of(-1) == 2;
    (void)me.fence();
    return right;
  });
  CHECK(found == std::vector<bool>{true, true});
}

TEST_CASE("who is on a node", "[fabric][shm][board]") {
  CHECK(node_identity("") == node_identity(""));
  CHECK(node_identity("a") != node_identity("b"));
  CHECK(node_identity("") != node_identity("a"));
}
