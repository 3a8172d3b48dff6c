// SPDX-License-Identifier: Apache-2.0
/// \file
/// The contract of fabric.hpp, as test cases that are the same for every fabric: contract_*.cpp. A fabric's own test
/// program links them (tests/fabric/Contract.cmake) and defines `with_fabric`; its other tests are for what is special
/// to the fabric. A case that asks for more than the capabilities promise sets `cannot`: the case is skipped, counted
/// and printed.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

#include "fabric/joined_ranks.hpp"
#include "skip.hpp"

namespace rma::test {

/// Runs `body` with a job of so many ranks of the fabric under test; a simulated one with several kinds of network, one
/// after the other. The body may not use GENERATE.
void with_fabric(int ranks, const std::function<void(fabric_job&)>& body);

/// `with_fabric` for a fabric of this machine.
inline void run_with(fabric_job& job, const std::function<void(fabric_job&)>& body) {
  body(job);
  if (!job.cannot.empty()) skip(job.cannot);
}

inline constexpr std::uint16_t message_kind = fabric::first_kind;

/// A network in bad conditions may refuse a registration once.
inline fabric::region_key region_of(job_member& m, std::vector<std::uint64_t>& memory) {
  fabric::region_key key;
  status s = status::not_supported;
  for (int tries = 0; tries < 2 && s == status::not_supported; ++tries)
    s = m.fabric.register_region(memory.data(), memory.size() * 8, key);
  REQUIRE(s == status::done);
  return key;
}

/// As many words as one write or read may have, of so many.
inline std::size_t fitting(fabric_job& all, std::size_t words) {
  return std::min(words, all.caps().transfer_bytes_max / 8);
}

inline bool write_words(fabric_job& all, int rank, int peer, const fabric::local_slice& here,
                        const fabric::region_key& region, const fabric::remote_slice& there, std::uint64_t token) {
  return all.start(rank, token, [&] { return all[rank].fabric.write(peer, {&here, 1}, region, {&there, 1}, token); });
}

inline bool read_words(fabric_job& all, int rank, int peer, const fabric::local_slice& here,
                       const fabric::region_key& region, const fabric::remote_slice& there, std::uint64_t token) {
  return all.start(rank, token, [&] { return all[rank].fabric.read(peer, {&here, 1}, region, {&there, 1}, token); });
}

inline bool send_word(fabric_job& all, int rank, int peer, std::uint64_t word) {
  return all.post([&] { return all[rank].fabric.send(peer, message_kind, bytes_of(word), {}); }) == status::done;
}

/// One message from `a` to `b`, and one back.
inline void exchange(fabric_job& all, int a, int b) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    const std::size_t had = all[to].messages.size();
    REQUIRE(send_word(all, from, to, had));
    REQUIRE(all.until([&] { return all[to].messages.size() == had + 1; }));
    CHECK(all[to].messages.back().source == from);
  }
}

inline bool all_over_as(const job_member& m, status result) {
  return std::ranges::all_of(m.over, [&](const auto& each) { return each.second == result; });
}

}  // namespace rma::test
