// SPDX-License-Identifier: Apache-2.0
// Goal: data in pieces go from where they lie to where they belong, by lists over the bulk channel, whichever side has
// a layout; and share that channel with windows. Method: two simulated ranks on two nodes; counters say which way it
// was. Break: let messages post their lists without waiting for their turn (in take_grant and begin_pieces call
// t.post(t) instead of joining a line): "messages and windows share the bulk channel" fails.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <rma/rma.hpp>
#include <rma/sim.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/fault_model.hpp"

namespace {

using rma::sim::rng;

std::uint64_t count_of(const rma::Runtime& rt, std::string_view name) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == name) return c.value;
  }
  return 0;
}

/// Blocks of so many bytes with as many between them.
struct buffer {
  buffer(std::size_t blocks, std::size_t block, bool apart)
      : count(blocks), bytes(block), stride(apart ? 2 * block : block), data(blocks * stride, 0xEE) {}
  std::size_t count, bytes, stride;
  std::vector<std::uint8_t> data;

  [[nodiscard]] rma::Layout layout() const {
    return rma::Layout::vector<std::uint8_t>(count, bytes, static_cast<std::ptrdiff_t>(stride));
  }
  [[nodiscard]] std::uint8_t& at(std::size_t i) { return data[i / bytes * stride + i % bytes]; }
  void fill(std::uint64_t salt) {
    for (std::size_t i = 0; i < count * bytes; ++i) at(i) = static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 13);
  }
  /// The first ones are the message's, the others and what lies between are as they were.
  [[nodiscard]] bool has(std::size_t come, std::uint64_t salt) {
    buffer wanted(count, bytes, stride != bytes);
    for (std::size_t i = 0; i < come; ++i) wanted.at(i) = static_cast<std::uint8_t>(i * 7 + i / 251 + salt * 13);
    return wanted.data == data;
  }
};

struct totals {
  std::uint64_t lists = 0, messages = 0, transfers = 0;
};

/// One message of so many blocks of 1 KiB.
totals exchange(const std::string& rendezvous, bool from_pieces, bool into_pieces, std::size_t blocks) {
  rma::sim::Config c;
  c.ranks = 2;
  c.ranks_per_node = 1;
  c.settings["RMA_RENDEZVOUS"] = rendezvous;
  totals all;
  const auto out = rma::sim::run(c, [&](rma::Runtime& rt) {
    rma::Team world = rt.world();
    buffer mine(blocks, 1024, from_pieces), theirs(blocks + 3, 1024, into_pieces);
    mine.fill(1);
    if (rt.rank() == 0) {
      world.send(mine.data.data(), mine.layout(), 1, 5);
    } else {
      const rma::Received what = world.recv(theirs.data.data(), theirs.layout(), 0, 5);
      if (what.bytes != blocks * 1024 || !theirs.has(what.bytes, 1)) throw std::runtime_error("wrong contents");
    }
    all.lists += count_of(rt, "layout_requests");
    all.messages += count_of(rt, "rendezvous_messages");
    all.transfers += count_of(rt, "rendezvous_transfers");
    return 0;
  });
  INFO(out.text());
  CHECK(out.ok());
  return all;
}

}  // namespace

TEST_CASE("pieces of a message are sent where they lie and received where they belong", "[p2p][pieces]") {
  const bool from_pieces = GENERATE(false, true);
  const bool into_pieces = GENERATE(false, true);
  CAPTURE(from_pieces, into_pieces);
  const bool any = from_pieces || into_pieces;
  constexpr std::size_t blocks = 98;  // 49 of them are always in a list of 50 pieces
  const totals found = exchange("auto", from_pieces, into_pieces, blocks);
  CHECK(found.lists == (!any ? 0 : 2 * 2));     // each is sent and received
  if (into_pieces) CHECK(found.messages == 3);  // else the receive has asked, in vain
  if (any) CHECK(found.transfers == 0);
}

TEST_CASE("pieces are copied where RMA_RENDEZVOUS says so, and where they are short", "[p2p][pieces]") {
  CHECK(exchange("stream", true, true, 98).lists == 0);
  CHECK(exchange("sgrs", false, false, 98).lists == 2);
  rma::sim::Config c;
  c.ranks = 2;
  c.ranks_per_node = 1;
  std::uint64_t lists = 0;
  const auto out = rma::sim::run(c, [&](rma::Runtime& rt) {
    rma::Team world = rt.world();
    buffer all(20000, 8, true);
    if (rt.rank() == 0) world.send(all.data.data(), all.layout(), 1, 5);
    if (rt.rank() == 1) world.recv(all.data.data(), all.layout(), 0, 5);
    lists += count_of(rt, "layout_requests");
    return 0;
  });
  CHECK(out.ok());
  CHECK(lists == 0);
}

namespace {

/// Both ranks put into each other's window and send to each other, all in pieces, a few at a time.
void mix(rma::Runtime& rt, std::uint64_t seed) {
  constexpr std::size_t turns = 12, part = 40000;
  rma::Team world = rt.world();
  const int peer = 1 - rt.rank();
  rng d(seed * 31 + static_cast<std::uint64_t>(rt.rank()));
  auto window = rma::Window<std::uint8_t>::allocate(world, turns * part);
  std::vector<buffer> out, in, put;
  std::vector<rma::MessageRequest> all;
  for (std::size_t i = 0; i < turns; ++i) {
    out.emplace_back(1 + (seed + i) % 70, 100 + i * 20, true);
    in.emplace_back(1 + (seed + i) % 70, 100 + i * 20, i % 3 != 0);
    put.emplace_back(1 + (seed + 3 * i) % 60, 300, true);
    out.back().fill(static_cast<std::uint64_t>(rt.rank()) + i);
    put.back().fill(static_cast<std::uint64_t>(rt.rank()) + 2 * i);
  }
  auto epoch = window.lock_all();
  for (std::size_t i = 0; i < turns; ++i) {
    all.push_back(world.irecv(in[i].data.data(), in[i].layout(), peer, static_cast<int>(i)));
    all.push_back(world.isend(out[i].data.data(), out[i].layout(), peer, static_cast<int>(i)));
    window.put(put[i].data.data(), put[i].layout(), peer, i * part, put[i].layout());
    if (d.one_in(3)) rt.progress();
  }
  rma::wait_all(all);
  epoch.flush();
  epoch.unlock();
  world.barrier();
  for (std::size_t i = 0; i < turns; ++i) {
    if (!in[i].has(in[i].count * in[i].bytes, static_cast<std::uint64_t>(peer) + i))
      throw std::runtime_error("message " + std::to_string(i));
    buffer came(put[i].count, put[i].bytes, true);
    came.fill(static_cast<std::uint64_t>(peer) + 2 * i);
    for (std::size_t k = 0; k < came.count; ++k) {
      const auto* const wanted = came.data.data() + k * came.stride;
      if (!std::equal(wanted, wanted + came.bytes, window.local().data() + i * part + k * came.stride))
        throw std::runtime_error("put " + std::to_string(i));
    }
  }
  window.free();
}

}  // namespace

TEST_CASE("messages and windows share the bulk channel", "[p2p][pieces]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    rma::sim::Config c;
    c.ranks = 2;
    c.ranks_per_node = 1;
    c.seed = seed;
    c.faults = seed % 4 != 0;
    c.settings["RMA_LAYOUT"] = seed % 2 == 0 ? "sgrs" : "auto";
    c.settings["RMA_RENDEZVOUS"] = seed % 3 == 0 ? "auto" : "sgrs";
    c.settings["RMA_EAGER_BYTES"] = "256";
    const auto out = rma::sim::run(c, [&](rma::Runtime& rt) { return mix(rt, seed), 0; });
    INFO("seed " << seed << "\n" << out.text());
    CHECK(out.ok());
  }
}
