// SPDX-License-Identifier: Apache-2.0
// The UCX fabric alone: several ranks' fabrics in one thread, joined by a directory that is a map. Which transports UCX
// uses is the environment's choice.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/contract_cases.hpp"
#include "fabric/ucx/library.hpp"
#include "fabric/ucx/open.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace {

using rma::status;
using rma::fabric::local_slice;
using rma::fabric::region_key;
using rma::fabric::remote_slice;
using rma::test::numbers;
using rma::test::region_of;

class job final : public rma::test::joined_ranks<rma::ucx::ucx_fabric> {
 public:
  explicit job(int size) {
    for (int r = 0; r < size; ++r) add(std::make_unique<rma::ucx::ucx_fabric>(r, size), rma::ucx::address_key(r));
  }
  /// UCX's own protocols change there.
  [[nodiscard]] std::vector<std::size_t> sizes_of_interest() const override { return {8192, 32768, 262144, 1'600'000}; }
};

}  // namespace

void rma::test::with_fabric(int ranks, const std::function<void(fabric_job&)>& body) {
  job all(ranks);
  run_with(all, body);
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
    CHECK(all[0].count("ucx_batches") - before <= count / rma::messaged::batch_messages + 2);
    CHECK(all[1].count("ucx_batches") - answers <= count / rma::messaged::batch_messages + 2);
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
