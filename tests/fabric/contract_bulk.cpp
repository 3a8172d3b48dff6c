// SPDX-License-Identifier: Apache-2.0
// The contract of fabrics: the bulk channel. Data go from the gather list into the posted receive, in order, once; what
// comes first waits for the other; what cannot be is an error at both ends.
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "fabric/contract_cases.hpp"

using namespace rma;
using namespace rma::test;
using fabric::local_slice;

namespace {

using bytes = std::vector<std::uint8_t>;

bytes pattern(std::size_t size, std::size_t seed) {
  bytes data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::uint8_t>(i * 31 + seed * 7 + i / 251);
  return data;
}

/// Pieces of these sizes, one behind the other; one piece if the fabric takes fewer than there are.
std::vector<local_slice> cut(bytes& data, std::initializer_list<std::size_t> sizes, std::size_t pieces_max) {
  if (sizes.size() > pieces_max) return {{data.data(), data.size()}};
  std::vector<local_slice> list;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    list.push_back({data.data() + at, size});
    at += size;
  }
  return list;
}

std::vector<local_slice> whole(bytes& data) { return {{data.data(), data.size()}}; }

bool send(fabric_job& all, int from, int to, const std::vector<local_slice>& what, std::uint64_t token) {
  return all.start(from, token, [&] { return all[from].fabric.send_bulk(to, what, token); });
}

bool receive(fabric_job& all, int at, int from, const std::vector<local_slice>& into, std::uint64_t token) {
  return all.start(at, token, [&] { return all[at].fabric.post_bulk_receive(from, into, token); });
}

/// A fabric without a bulk channel says so at each call, whatever it is asked for.
bool has_none(fabric_job& all) {
  if (all.caps().bulk_pieces_max != 0) return false;
  bytes data(all.caps().gather_max + 1);
  std::vector<local_slice> too_many;
  for (std::uint8_t& each : data) too_many.push_back({&each, 1});
  CHECK(all[0].fabric.send_bulk(1, too_many, 1) == status::not_supported);
  CHECK(all[0].fabric.send_bulk(1, whole(data), 1) == status::not_supported);
  CHECK(all[0].fabric.post_bulk_receive(1, whole(data), 1) == status::not_supported);
  all.cannot = "it has no bulk channel";
  return true;
}

}  // namespace

// Break: match the last receive; or leave out a piece.
TEST_CASE("contract: bulk sends go from gather lists into scatter lists, in order, however many", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (has_none(all)) return;
    constexpr std::size_t sends = 100, most = 20'009;
    for (const int target : {1, 0}) {
      CAPTURE(target);
      for (int r = 0; r < 2; ++r) all[r].over.clear();
      std::vector<bytes> out, in;
      for (std::size_t i = 0; i < sends; ++i) {
        out.push_back(pattern(10'000 * (i % 3) + 9, i));
        in.emplace_back(most);
      }
      std::size_t sent = 0, posted = 0;
      const auto gather = all.caps().bulk_pieces_max, scatter = gather;
      REQUIRE(all.until([&] {
        for (; sent < sends; ++sent) {
          const auto list = cut(out[sent], {1, 4, out[sent].size() - 5}, gather);
          if (all[0].fabric.send_bulk(target, list, sent + 1) != status::posted) break;
        }
        for (; posted < sends; ++posted) {
          const auto list = cut(in[posted], {3, 5000, most - 5003}, scatter);
          if (all[target].fabric.post_bulk_receive(0, list, sends + posted + 1) != status::posted) break;
        }
        return all[0].over.size() + (target == 0 ? 0 : all[1].over.size()) == 2 * sends;
      }));
      for (int r = 0; r < 2; ++r) CHECK(all_over_as(all[r], status::done));
      bool right = true;
      for (std::size_t i = 0; i < sends; ++i) {
        right = right && all[0].bytes[i + 1] == 0 && all[target].bytes[sends + i + 1] == out[i].size();
        out[i].resize(most);
        right = right && in[i] == out[i];
      }
      CHECK(right);
      CHECK(all.until([&] { return all.are_quiet(); }));
    }
  });
}

// Break: drop a send that finds no receive; or let it keep back messages.
TEST_CASE("contract: a bulk send without a receive waits for it, and nothing waits behind it", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (has_none(all)) return;
    bytes out = pattern(9000, 1), in(9000);
    REQUIRE(send(all, 0, 1, whole(out), 1));
    if (all.post([&] { return all[0].fabric.send(1, message_kind, {}, {}); }) == status::done) {
      CHECK(all.until([&] { return all[1].messages.size() == 1; }));
    }
    CHECK(all[0].over.empty());
    REQUIRE(receive(all, 1, 0, whole(in), 2));
    REQUIRE((all.is_over(0, 1) && all.is_over(1, 2)));
    CHECK((all[0].over[1] == status::done && all[1].over[2] == status::done));
    CHECK((in == out));
  });
}

// Break: write what fits; or let the origin believe that all is well.
TEST_CASE("contract: a bulk send that is too long is an error at both ends, and the others are not", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (has_none(all)) return;
    constexpr std::size_t sends = 12;
    std::vector<bytes> out, in;
    for (std::size_t i = 0; i < sends; ++i) {
      out.push_back(pattern(i % 5 == 2 ? 6001 : i % 5 == 3 ? 0 : 6000, i));
      in.emplace_back(i % 5 == 3 ? 0 : 6000);
    }
    std::size_t sent = 0, posted = 0;
    REQUIRE(all.until([&] {
      while (posted < sends && all[1].fabric.post_bulk_receive(0, whole(in[posted]), posted + 1) == status::posted)
        ++posted;
      while (sent < sends && all[0].fabric.send_bulk(1, whole(out[sent]), sent + 1) == status::posted) ++sent;
      return all[0].over.size() == sends && all[1].over.size() == sends;
    }));
    for (std::size_t i = 0; i < sends; ++i) {
      CAPTURE(i);
      const bool too_long = out[i].size() > in[i].size();
      for (int r = 0; r < 2; ++r) CHECK(all[r].over[i + 1] == (too_long ? status::message_too_long : status::done));
      CHECK(all[1].bytes[i + 1] == (too_long ? 0 : out[i].size()));
      if (!too_long) CHECK((in[i] == out[i]));
    }
    for (int r = 0; r < 2; ++r) CHECK(all[r].broken.empty());
    CHECK(all.until([&] { return all.are_quiet(); }));
  });
}

// Break: take lists of any length.
TEST_CASE("contract: bulk lists that are too long are refused, and those that are just short enough are not",
          "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (has_none(all)) return;
    bytes out = pattern(70'000, 1), in(70'000);
    const auto list = [](bytes& data, std::size_t pieces) {
      std::vector<local_slice> all_pieces;
      for (std::size_t i = 0; i < pieces; ++i) all_pieces.push_back({data.data() + i, 1});
      return all_pieces;
    };
    const std::size_t gather = all.caps().bulk_pieces_max, scatter = gather;
    CHECK(all[0].fabric.send_bulk(1, list(out, gather + 1), 1) == status::bad_argument);
    CHECK(all[0].fabric.post_bulk_receive(1, list(in, scatter + 1), 1) == status::bad_argument);
    CHECK(all.are_quiet());
    REQUIRE(send(all, 0, 1, list(out, std::min(gather, scatter)), 1));
    REQUIRE(receive(all, 1, 0, list(in, scatter), 2));
    REQUIRE((all.is_over(0, 1) && all.is_over(1, 2)));
    CHECK((all[0].over[1] == status::done && all[1].over[2] == status::done));
    CHECK(std::equal(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(std::min(gather, scatter)), out.begin()));
  });
}

// Break: leave what is posted on the bulk channel as it is.
TEST_CASE("contract: what was posted on the bulk channel of a rank that dies ends with peer_failed", "[contract]") {
  for (const bool gone_first : {false, true}) {
    with_fabric(3, [&](fabric_job& all) {
      CAPTURE(gone_first);
      if (has_none(all)) return;
      bytes out = pattern(8000, 1), in(8000);
      REQUIRE(receive(all, 1, 0, whole(in), 1));
      REQUIRE(send(all, 0, 1, whole(out), 1));
      REQUIRE((all.is_over(0, 1) && all.is_over(1, 1)));
      all[0].over.clear();
      std::size_t under_way = 0;
      if (gone_first) all.leave(1);
      for (std::uint64_t t = 2; t < 6; ++t)
        under_way += all[0].fabric.send_bulk(1, whole(out), t) == status::posted ? 1 : 0;
      for (std::uint64_t t = 6; t < 9; ++t)
        under_way += all[0].fabric.post_bulk_receive(1, whole(in), t) == status::posted ? 1 : 0;
      CHECK((under_way > 0 || gone_first));  // a peer that has left may be known to be gone
      all.announce_death(1);
      if (!gone_first) all.leave(1);
      CHECK(all.until([&] { return all[0].over.size() == under_way && all.are_quiet(); }));
      CHECK(all_over_as(all[0], status::peer_failed));
      REQUIRE(receive(all, 2, 0, whole(in), 1));  // the others go on
      REQUIRE(send(all, 0, 2, whole(out), 10));
      REQUIRE((all.is_over(2, 1) && all.is_over(0, 10)));
      CHECK((in == out));
    });
  }
}
