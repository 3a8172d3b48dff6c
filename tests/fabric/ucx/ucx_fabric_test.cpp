// SPDX-License-Identifier: Apache-2.0
// The UCX fabric alone: several ranks' fabrics in one thread, joined by a directory that is a map. Which transports UCX
// uses is the environment's choice.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "fabric/joined_ranks.hpp"
#include "fabric/ucx/library.hpp"
#include "fabric/ucx/open.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace {

using rma::status;
using rma::fabric::local_slice;
using rma::fabric::region_key;
using rma::fabric::remote_slice;

constexpr std::uint16_t kind = rma::fabric::first_kind;

using member = rma::test::joined_rank<rma::ucx::ucx_fabric>;

class job final : public rma::test::joined_ranks<rma::ucx::ucx_fabric> {
 public:
  explicit job(int size) {
    for (int r = 0; r < size; ++r) add(std::make_unique<rma::ucx::ucx_fabric>(r, size), rma::ucx::address_key(r));
  }
  /// Words of one write or read, of these.
  std::size_t fitting(std::size_t words) { return std::min(words, (*this)[0].net->caps().transfer_bytes_max / 8); }
};

std::vector<std::uint64_t> numbers(std::size_t count, std::uint64_t first) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

region_key region_of(member& m, std::vector<std::uint64_t>& memory) {
  region_key key;
  REQUIRE(m.net->register_region(memory.data(), memory.size() * 8, key) == status::done);
  return key;
}

std::span<const std::byte> bytes_of(const std::uint64_t& word) { return std::as_bytes(std::span(&word, 1)); }

}  // namespace

// Goal: what is over is in the target's memory; a read finds what was written before it.
// Method: sizes on both sides of UCX's own protocol switches, gathered from two pieces; the read is posted at once.
// Break: report a write when UCX gives the buffer back, or let a read pass unflushed writes.
TEST_CASE("a write that is over is placed, and a read comes after it", "[ucx]") {
  job all(2);
  for (const std::size_t wanted : {1UL, 100UL, 1000UL, 4096UL, 40000UL, 200000UL}) {
    const std::size_t count = all.fitting(wanted);
    CAPTURE(count);
    std::vector<std::uint64_t> memory(count);
    std::vector<std::uint64_t> back(count);
    auto from = numbers(count, count);
    const region_key key = region_of(all[1], memory);
    const std::size_t half = count / 2 * 8;
    const std::vector<local_slice> pieces{{from.data(), half}, {from.data() + count / 2, count * 8 - half}};
    const remote_slice there{key.address, count * 8};
    const local_slice here{back.data(), count * 8};
    all[0].over.clear();
    REQUIRE(all.post([&] { return all[0].net->write(1, pieces, key, {&there, 1}, 1); }) == status::posted);
    CHECK(all[0].over.empty());
    REQUIRE(all.post([&] { return all[0].net->read(1, {&here, 1}, key, {&there, 1}, 2); }) == status::posted);
    REQUIRE(all.until([&] { return all[0].over.size() == 2; }));
    CHECK(memory == from);
    CHECK(all[0].over[1] == status::done);
    CHECK(all[0].over[2] == status::done);
    CHECK(back == from);
    all[1].net->deregister_region(key);
  }
  CHECK(all.until([&] { return all[0].net->quiet() && all[1].net->quiet(); }));
}

// Goal: small operations made of messages travel together, and so do their answers; one alone does not wait.
// Break: let each leave at once.
TEST_CASE("small operations travel together", "[ucx]") {
  job all(2);
  if (!all[0].net->caps().messages_after_writes) return;  // they are UCX's own
  constexpr std::uint64_t count = 160;
  std::vector<std::uint64_t> memory(count);
  std::vector<std::uint64_t> back(count);
  auto from = numbers(count, 1);
  const region_key key = region_of(all[1], memory);
  const auto post = [&](bool writes, std::uint64_t i) {
    const local_slice here{&(writes ? from : back)[i], 8};
    const remote_slice there{key.address + 8 * i, 8};
    const std::uint64_t token = (writes ? 0 : count) + i + 1;
    return writes ? all[0].net->write(1, {&here, 1}, key, {&there, 1}, token)
                  : all[0].net->read(1, {&here, 1}, key, {&there, 1}, token);
  };
  REQUIRE(all.post([&] { return post(true, 0); }) == status::posted);
  REQUIRE(all.until([&] { return all[0].over.size() == 1; }));
  for (const bool writes : {true, false}) {
    const std::uint64_t before = all[0].count("ucx_batches"), answers = all[1].count("ucx_batches");
    REQUIRE(post(writes, 0) == status::posted);
    CHECK(all[0].count("ucx_batches") - before == (writes ? 0 : 1));
    for (std::uint64_t i = 1; i < count; ++i) REQUIRE(post(writes, i) == status::posted);
    REQUIRE(all.until([&] { return all[0].over.size() == (writes ? count : 2 * count); }));
    CHECK(all[0].count("ucx_batches") - before <= count / rma::ucx::batch_enough_messages + 2);
    CHECK(all[1].count("ucx_batches") - answers <= count / rma::ucx::batch_enough_messages + 2);
  }
  CHECK(memory == from);
  CHECK(back == from);
}

// Goal: rows fill their batches, and the question whether they are placed travels with the last.
// Break: let a batch leave when it has more than it had to wait for.
TEST_CASE("rows fill batches", "[ucx]") {
  job all(2);
  if (!all[0].net->caps().messages_after_writes) return;
  constexpr std::size_t rows = 64, row_words = 256, row_bytes = 8 * row_words;
  std::vector<std::uint64_t> memory(rows * row_words);
  auto from = numbers(rows * row_words, 1);
  const region_key key = region_of(all[1], memory);
  const auto put_row = [&](std::size_t row) {
    const local_slice here{&from[row * row_words], row_bytes};
    const remote_slice there{key.address + row * row_bytes, row_bytes};
    return all[0].net->write(1, {&here, 1}, key, {&there, 1}, row + 1);
  };
  REQUIRE(all.post([&] { return put_row(0); }) == status::posted);
  REQUIRE(all.until([&] { return all[0].over.size() == 1; }));
  all[0].over.clear();
  const std::uint64_t before = all[0].count("ucx_batches");
  for (std::size_t row = 0; row < rows; ++row) REQUIRE(put_row(row) == status::posted);
  REQUIRE(all.until([&] { return all[0].over.size() == rows; }));
  CHECK(all[0].count("ucx_batches") - before == rows * row_bytes / rma::ucx::batch_bytes + 1);
  CHECK(memory == from);
}

// Goal: messages arrive once and in order, those to oneself, too, also if they are sent faster than they are taken.
TEST_CASE("messages are in order", "[ucx]") {
  job all(2);
  for (const int target : {0, 1}) {
    std::uint64_t sent = 0;
    const std::vector<std::byte> payload(3000);
    for (; sent < 3000; ++sent) {
      const auto rest = std::span(payload).first(sent % payload.size());
      REQUIRE(all.post([&] { return all[0].net->send(target, kind, bytes_of(sent), rest); }) == status::done);
    }
    REQUIRE(all.until([&] { return all[target].messages.size() == sent; }));
    for (std::uint64_t i = 0; i < sent; ++i) {
      const auto& [source, sent_as, bytes] = all[target].messages[i];
      CHECK(source == 0);
      CHECK(sent_as == kind);
      REQUIRE(bytes.size() == sizeof i + i % payload.size());
      REQUIRE(std::equal(bytes.begin(), bytes.begin() + sizeof i, bytes_of(i).begin()));
    }
  }
}

// Goal: who learns of an immediate finds the data. One TCP connection keeps this order by itself; UCX does not promise
// it.
TEST_CASE("an immediate comes after its data", "[ucx]") {
  job all(2);
  std::vector<std::uint64_t> memory(all.fitting(100'000));
  const region_key key = region_of(all[1], memory);
  bool there = true;
  for (std::uint32_t round = 1; round <= 20; ++round) {
    auto from = numbers(memory.size(), round);
    const local_slice here{from.data(), from.size() * 8};
    all[1].at_immediate = [&] { there = there && memory == from; };
    REQUIRE(all.post([&] {
      return all[0].net->write_with_immediate(1, {&here, 1}, key, {key.address, here.bytes}, round, round);
    }) == status::posted);
    REQUIRE(all.until([&] { return all[1].immediates.size() == round && all[0].over.size() == round; }));
    CHECK(all[1].immediates.back() == std::pair(0, round));
  }
  CHECK(there);
}

TEST_CASE("atomics", "[ucx]") {
  job all(3);
  if (!all[0].net->caps().atomics) return;
  std::vector<std::uint64_t> memory{5, 0};
  const region_key key = region_of(all[0], memory);
  std::vector<std::uint64_t> old(200);
  for (std::uint64_t i = 0; i < 200; ++i) {
    member& m = all[static_cast<int>(i % 3)];
    REQUIRE(all.post([&] { return m.net->fetch_add(0, key, key.address, 2, old[i], i + 1); }) == status::posted);
  }
  REQUIRE(all.until([&] { return all[0].over.size() + all[1].over.size() + all[2].over.size() == 200; }));
  std::sort(old.begin(), old.end());
  for (std::uint64_t i = 0; i < 200; ++i) CHECK(old[i] == 5 + 2 * i);
  CHECK(memory[0] == 405);
  for (const std::uint64_t expected : {404U, 405U}) {
    all[1].over.clear();
    std::uint64_t found = 0;
    REQUIRE(all.post([&] { return all[1].net->compare_swap(0, key, key.address, expected, 7, found, 1); }) ==
            status::posted);
    REQUIRE(all.until([&] { return !all[1].over.empty(); }));
    CHECK(found == 405);
    CHECK(memory[0] == (expected == 405 ? 7 : 405));
  }
}

TEST_CASE("a region that is gone is refused", "[ucx]") {
  job all(2);
  std::vector<std::uint64_t> memory(10);
  const region_key key = region_of(all[1], memory);
  all[1].net->deregister_region(key);
  std::uint64_t word = 0;
  const local_slice here{&word, 8};
  const remote_slice there{key.address, 8};
  status s = all.post([&] { return all[0].net->read(1, {&here, 1}, key, {&there, 1}, 1); });
  if (s == status::posted) {  // it is the target that refuses
    REQUIRE(all.until([&] { return all[0].over.contains(1); }));
    s = all[0].over[1];
  }
  CHECK(s == status::transfer_failed);
  if (!all[0].net->caps().messages_after_writes) return;
  REQUIRE(all.post([&] { return all[0].net->write(1, {&here, 1}, key, {&there, 1}, 2); }) == status::posted);
  REQUIRE(all.until([&] { return all[0].over.contains(2); }));
  CHECK(all[0].over[2] == status::transfer_failed);
}

// Goal: a rank that leaves does so for those, too, to which it has never sent anything; nobody takes it for dead. Its
// goodbye is expected until it is there.
// Break: say no goodbye; or expect none.
TEST_CASE("a rank that leaves breaks nothing", "[ucx]") {
  job all(3);
  const std::uint64_t word = 1;
  REQUIRE(all.post([&] { return all[0].net->send(1, kind, bytes_of(word), {}); }) == status::done);
  REQUIRE(all.post([&] { return all[2].net->send(0, kind, bytes_of(word), {}); }) == status::done);
  REQUIRE(all.until([&] { return !all[1].messages.empty() && !all[0].messages.empty() && all[1].net->quiet(); }));
  CHECK(all[0].net->expects_goodbye(1));
  all.remove(1);
  CHECK(!all.until([&] { return !all[0].broken.empty() || !all[2].broken.empty(); }, 8));
  CHECK_FALSE(all[0].net->expects_goodbye(1));
}

// Goal: what is under way towards a rank that leaves still ends well: it serves until then.
// Break: close the endpoints at once.
TEST_CASE("a rank that leaves serves what is under way", "[ucx]") {
  job all(2);
  std::vector<std::uint64_t> memory(all.fitting(1 << 16), 7);
  std::vector<std::uint64_t> into(memory.size());
  const region_key key = region_of(all[1], memory);
  const local_slice here{into.data(), into.size() * 8};
  const remote_slice there{key.address, here.bytes};
  std::uint64_t word = 0;
  const local_slice small{&word, 8};
  const remote_slice first{key.address, 8};
  REQUIRE(all.post([&] { return all[0].net->read(1, {&small, 1}, key, {&first, 1}, 1); }) == status::posted);
  REQUIRE(all.until([&] { return all[0].over.contains(1); }));
  REQUIRE(all[0].net->read(1, {&here, 1}, key, {&there, 1}, 2) == status::posted);
  std::thread leaver([gone = all.take(1)]() mutable { gone.reset(); });
  const bool over = all.until([&] { return all[0].over.contains(2); });
  leaver.join();
  REQUIRE(over);
  CHECK(all[0].over[2] == status::done);
  CHECK(into == memory);
}

// Goal: when the job says that a rank is dead, what is under way to it ends, and nothing of it arrives.
TEST_CASE("operations to the dead end with peer_failed", "[ucx]") {
  job all(2);
  std::vector<std::uint64_t> memory(all.fitting(1 << 20));
  std::vector<std::uint64_t> from(memory.size());
  const region_key key = region_of(all[1], memory);
  const local_slice here{from.data(), from.size() * 8};
  const remote_slice there{key.address, here.bytes};
  std::uint64_t word = 0;
  const local_slice small{&word, 8};
  REQUIRE(all.post([&] { return all[0].net->read(1, {&small, 1}, key, {&there, 1}, 1); }) == status::posted);
  REQUIRE(all[0].net->write(1, {&here, 1}, key, {&there, 1}, 2) == status::posted);
  all[0].net->forget(1);
  all.remove(1);
  for (int i = 0; i < 3; ++i) all[0].net->poll(all[0], 100);
  REQUIRE(all[0].over.count(2) == 1);
  CHECK(all[0].over[2] == status::peer_failed);
  CHECK(all[0].broken.empty());
  CHECK(all[0].net->write(1, {&here, 1}, key, {&there, 1}, 3) == status::peer_failed);
  CHECK(all[0].net->quiet());
}

TEST_CASE("the transports that UCX may use are named", "[ucx]") {
  using rma::ucx::transports_of_context;
  CHECK(transports_of_context("#     component 3  :  posix\n#            md 1  :  component 1  tcp \n#\n"
                              "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
                              "#      resource 1  :  md 1  dev 1  flags -- tcp/lo\n"
                              "#      resource 2  :  md 2  dev 2  flags -- rc_verbs/mlx5_0:1") ==
        std::vector<std::string>{"tcp", "rc_verbs"});
  CHECK(transports_of_context("#      resource 0  :  md 0  dev 0  flags -- self/memory0\n").empty());
  CHECK(transports_of_context("").empty());
}

// UCX has this only as a text for people, whose form may change: then nothing is found, and nothing breaks.
TEST_CASE("the transports that UCX has picked are named", "[ucx]") {
  CHECK(rma::ucx::transports_in(
            "#  peer: x\n#   lane[0]:  2:tcp/eth0.0 md[1]   -> md[0]/tcp am am_bw#0 wireup\n"
            "#   lane[1]:  7:rc_mlx5/mlx5_0:1.0 md[4] -> md[4] rma#0\n#   lane[2]:  2:tcp/eth0.1 md[1]\n") ==
        "tcp/eth0 rc_mlx5/mlx5_0:1");
  CHECK(rma::ucx::transports_in("").empty());
  CHECK(rma::ucx::transports_in("lane[\nlane[0]:\nlane[0]: 5\nlane[0]: 5:").empty());
  job all(2);
  CHECK(!all[0].net->route(1).empty());
}
