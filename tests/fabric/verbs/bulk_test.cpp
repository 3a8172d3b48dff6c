// SPDX-License-Identifier: Apache-2.0
// The bulk channel of the verbs fabric: a second connection at first use; data go from the gather list into the posted
// receive, in order; what goes wrong is an error of one send and its receive.
#include <sys/mman.h>

#include <catch2/catch.hpp>

#include <cstdint>
#include <numeric>
#include <vector>

#include "fabric/verbs/verbs_job.hpp"

namespace {

using rma::status;
using rma::fabric::local_slice;
using rma::fabric::region_key;
using rma::test::no_device;
using rma::test::verbs_job;

using bytes = std::vector<std::uint8_t>;

bytes pattern(std::size_t size, unsigned seed) {
  bytes data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(i * 31 + seed * 7 + i / 251);
  return data;
}

/// Pieces of these sizes, one behind the other.
std::vector<local_slice> cut(bytes& data, std::initializer_list<std::size_t> sizes) {
  std::vector<local_slice> list;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    list.push_back({data.data() + at, size});
    at += size;
  }
  return list;
}

status send(verbs_job& job, int from, int to, const std::vector<local_slice>& what, std::uint64_t token) {
  return job.post([&] { return job[from].net->send_bulk(to, what, token); });
}

status receive(verbs_job& job, int at, int from, const std::vector<local_slice>& into, std::uint64_t token) {
  return job.post([&] { return job[at].net->post_bulk_receive(from, into, token); });
}

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
    CHECK(job[r].net->send_bulk(1 - r, cut(out[me], {out[me].size()}), 1) == status::posted);
    CHECK(job[r].net->post_bulk_receive(1 - r, cut(in[me], {in[me].size()}), 2) == status::posted);
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

TEST_CASE("a rank has a bulk channel with itself", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(1);
  bytes out = pattern(5000, 3), in(5000);
  REQUIRE(receive(job, 0, 0, cut(in, {1000, 4000}), 1) == status::posted);
  REQUIRE(send(job, 0, 0, cut(out, {4999, 1}), 2) == status::posted);
  REQUIRE(over(job, 0, 2));
  CHECK((in == out));
}

TEST_CASE("bulk sends go from gather lists into scatter lists, in order, however many", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(2);
  constexpr unsigned sends = 100;
  constexpr std::size_t most = 20'009;
  std::vector<bytes> out, in;
  for (unsigned i = 0; i < sends; ++i) {
    out.push_back(pattern(10'000 * (i % 3) + 9, i));
    in.emplace_back(most);
  }
  region_key known;  // some of it is registered
  REQUIRE(job[0].net->register_region(out[5].data(), out[5].size(), known) == status::done);
  std::uint64_t sent = 0, posted = 0;
  REQUIRE(job.until([&] {
    for (; sent < sends; ++sent) {
      bytes& data = out[sent];
      const auto from = cut(data, {1, 4, data.size() - 5, std::size_t{0}});
      if (job[0].net->send_bulk(1, from, sent + 1) != status::posted) break;
    }
    for (; posted < sends; ++posted) {
      if (job[1].net->post_bulk_receive(0, cut(in[posted], {3, 5000, most - 5003}), posted + 1) != status::posted)
        break;
    }
    return job[0].over.size() == sends && job[1].over.size() == sends;
  }));
  for (unsigned i = 0; i < sends; ++i) {
    INFO("send " << i);
    CHECK(job[0].over[i + 1] == status::done);
    CHECK(job[1].over[i + 1] == status::done);
    CHECK(job[0].bytes[i + 1] == 0);
    CHECK(job[1].bytes[i + 1] == out[i].size());
    out[i].resize(most);
    CHECK((in[i] == out[i]));
  }
  CHECK(job[0].net->quiet());
}

TEST_CASE("a bulk send without a receive waits for it", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(2);
  bytes out = pattern(9000, 1), in(9000);
  REQUIRE(send(job, 0, 1, cut(out, {9000}), 1) == status::posted);
  REQUIRE(job.post([&] { return job[0].net->send(1, 20, {}, {}); }) == status::done);
  REQUIRE(job.until([&] { return job[1].messages.size() == 1; }));  // other traffic goes on
  CHECK(job[0].over.empty());
  CHECK_FALSE(job[0].net->quiet());
  REQUIRE(receive(job, 1, 0, cut(in, {9000}), 2) == status::posted);
  REQUIRE(over(job, 0, 1));
  REQUIRE(over(job, 1, 1));
  CHECK((in == out));
}

TEST_CASE("a bulk send that is too long is an error at both ends, and the others are not", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(2);
  constexpr std::uint64_t sends = 12;
  std::vector<bytes> out, in;
  for (unsigned i = 0; i < sends; ++i) {
    out.push_back(pattern(i % 5 == 2 ? 6001 : 6000, i));
    in.emplace_back(6000);
  }
  for (std::uint64_t i = 0; i < sends; ++i) {
    REQUIRE(receive(job, 1, 0, cut(in[i], {6000}), i + 1) == status::posted);
    REQUIRE(send(job, 0, 1, cut(out[i], {out[i].size()}), i + 1) == status::posted);
  }
  REQUIRE(over(job, 0, sends));
  REQUIRE(over(job, 1, sends));
  for (std::uint64_t i = 0; i < sends; ++i) {
    INFO("send " << i);
    const bool too_long = out[i].size() > in[i].size();
    for (int r = 0; r < 2; ++r) CHECK(job[r].over[i + 1] == (too_long ? status::message_too_long : status::done));
    CHECK(job[1].bytes[i + 1] == (too_long ? 0 : out[i].size()));
    if (!too_long) CHECK((in[i] == out[i]));
  }
  for (int r = 0; r < 2; ++r) {
    CHECK(job[r].broken.empty());
    CHECK(job[r].net->quiet());
  }
}

TEST_CASE("bulk lists that are too long, and memory that cannot be registered, are refused", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(2);
  bytes data(64);
  std::vector<local_slice> many(job[0].net->caps().gather_max + 1, local_slice{data.data(), 1});
  CHECK(job[0].net->send_bulk(1, many, 1) == status::bad_argument);
  CHECK(job[0].net->post_bulk_receive(1, many, 1) == status::bad_argument);
  void* const nothing = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(nothing != MAP_FAILED);
  CHECK(job[0].net->send_bulk(1, std::vector{local_slice{data.data(), 8}, local_slice{nothing, 8}}, 1) ==
        status::not_supported);
  CHECK(job[0].net->quiet());
  ::munmap(nothing, 4096);
}

TEST_CASE("what was posted on the bulk channel of a peer that dies ends with peer_failed", "[verbs][bulk]") {
  if (no_device()) return;
  verbs_job job(3);
  bytes out = pattern(8000, 1), in(8000);
  REQUIRE(receive(job, 1, 0, cut(in, {8000}), 1) == status::posted);
  REQUIRE(send(job, 0, 1, cut(out, {8000}), 1) == status::posted);
  REQUIRE(over(job, 0, 1));
  for (std::uint64_t t = 2; t < 6; ++t) REQUIRE(send(job, 0, 1, cut(out, {8000}), t) == status::posted);
  for (std::uint64_t t = 6; t < 9; ++t) REQUIRE(receive(job, 0, 1, cut(in, {8000}), t) == status::posted);
  job.remove(1);
  job[0].net->forget(1);
  REQUIRE(over(job, 0, 8));
  for (std::uint64_t t = 2; t < 9; ++t) CHECK(job[0].over[t] == status::peer_failed);
  CHECK(job[0].net->send_bulk(1, cut(out, {8}), 9) == status::peer_failed);
  CHECK(job[0].net->quiet());
  REQUIRE(receive(job, 2, 0, cut(in, {8000}), 1) == status::posted);  // the others go on
  REQUIRE(send(job, 0, 2, cut(out, {8000}), 10) == status::posted);
  REQUIRE(over(job, 2, 1));
  CHECK((in == out));
}
