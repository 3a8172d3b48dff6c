// SPDX-License-Identifier: Apache-2.0
// The bulk channel of the verbs fabric, beyond the contract of all: a second connection at first use.
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

#include "fabric/verbs/verbs_job.hpp"

namespace {

using rma::status;
using rma::fabric::local_slice;
using rma::test::no_device;
using rma::test::verbs_job;

using bytes = std::vector<std::uint8_t>;

bytes pattern(std::size_t size, unsigned seed) {
  bytes data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(i * 31 + seed * 7 + i / 251);
  return data;
}

std::vector<local_slice> whole(bytes& data) { return {{data.data(), data.size()}}; }

bool over(verbs_job& job, int rank, std::size_t count) {
  return job.until([&] { return job[rank].over.size() == count; });
}

}  // namespace

TEST_CASE("the bulk channel is a second queue pair, made at first use, and goes both ways", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(3);
  REQUIRE(job.post([&] { return job[0].net->send(1, 20, {}, {}); }) == status::done);
  REQUIRE(job.until([&] { return job[1].messages.size() == 1; }));
  for (int r = 0; r < 2; ++r) CHECK(job[r].count("verbs_queue_pairs") == 1);
  std::vector<bytes> out{pattern(100'000, 1), pattern(70'000, 2)};
  std::vector<bytes> in{bytes(70'000), bytes(100'000)};
  for (int r = 0; r < 2; ++r) {  // both ask at once
    const auto me = static_cast<std::size_t>(r);
    CHECK(job[r].net->send_bulk(1 - r, whole(out[me]), 1) == status::posted);
    CHECK(job[r].net->post_bulk_receive(1 - r, whole(in[me]), 2) == status::posted);
  }
  for (int r = 0; r < 2; ++r) REQUIRE(over(job, r, 2));
  CHECK((in[0] == out[1]));
  CHECK((in[1] == out[0]));
  for (int r = 0; r < 2; ++r) {
    CHECK(job[r].over[1] == status::done);
    CHECK(job[r].over[2] == status::done);
    CHECK(job[r].count("verbs_queue_pairs") == 2);
    CHECK(job[r].count("verbs_bulk_sends") == 1);
  }
  REQUIRE(job.until([&] { return job[0].net->quiet() && job[1].net->quiet(); }));
  CHECK(job[2].count("verbs_queue_pairs") == 0);
}

TEST_CASE("memory that cannot be registered is refused on the bulk channel", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(2);
  bytes data(64);
  void* const nothing = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(nothing != MAP_FAILED);
  CHECK(job[0].net->send_bulk(1, std::vector{local_slice{data.data(), 8}, local_slice{nothing, 8}}, 1) ==
        status::not_supported);
  CHECK(job[0].net->quiet());
  ::munmap(nothing, 4096);
}
