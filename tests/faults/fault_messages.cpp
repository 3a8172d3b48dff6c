// SPDX-License-Identifier: Apache-2.0
// A rank dies somewhere in its messages: between any two calls of a long exchange of short and long ones with all
// others. They are told, and what they were receiving into stays as it was when they were told.
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "fault_stage.hpp"
#include "step_counter.hpp"

namespace faults {
namespace {

/// Both sides draw the same: within a line, eager, announced; each size a power of two or a bit more.
std::size_t size_of(const stage& on, int step, int survivor) {
  std::uint64_t x =
      on.seed * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(step) * 131 + static_cast<std::uint64_t>(survivor) * 7;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9U;
  x ^= x >> 32;
  return (std::size_t{1} << x % 19) + (x >> 8) % 3;
}

/// After so many calls the victim dies.
struct fuse {
  stage& on;
  std::uint64_t left;
  void burn() {
    if (left-- == 0) on.die();
  }
};

constexpr int ready_tag = 1 << 20;  ///< no step has it

std::int64_t watch_ns() {
  const char* const text = std::getenv("FAULT_WATCH_MS");
  return (text == nullptr ? 100 : std::atoll(text)) * 1'000'000;
}

}  // namespace

void messages_until_death(stage& on) {
  constexpr std::size_t bytes_max = (std::size_t{1} << 18) + 2;
  constexpr std::size_t buffers = 3;
  std::array<std::vector<std::byte>, buffers> in;
  std::vector<std::byte> out(bytes_max, std::byte{1});
  for (auto& each : in) each.resize(bytes_max, std::byte{7});
  std::vector<rma::MessageRequest> posted;
  on.ready(on.victim);
  on.world.send(std::span<const std::byte>(out).first(0), on.victim, ready_tag);
  on.must_be_told("message", [&] {
    try {
      for (int step = 0;; ++step) {
        const std::size_t bytes = size_of(on, step, on.rank());
        posted.clear();
        for (auto& each : in) posted.push_back(on.world.irecv(std::span(each.data(), bytes), on.victim, step));
        for (std::size_t i = 0; i < buffers; ++i) on.world.send(std::span(out.data(), bytes), on.victim, step);
        rma::wait_all(posted);
      }
    } catch (const rma::Error& e) {  // by a send, which names its call
      throw rma::Error(e.code(), "messages: world rank " + std::to_string(e.rank()) + ": " + e.what(), e.rank());
    }
  });
  for (auto& each : posted) (void)each.wait_nothrow();
  const auto before = in;
  const std::int64_t until = monotonic_ns() + watch_ns();
  while (monotonic_ns() < until) on.runtime.progress();
  if (in != before) on.wrong("a buffer was written to after its receive had failed");
}

namespace {

/// Waits until the others have nothing else to do with this rank than to exchange messages.
void await_others(stage& on) {
  on.wait_ready(on.survivors());
  for (const int other : on.survivors()) on.world.recv(std::span<std::byte>(), other, ready_tag);
}

void exchange_messages(stage& on, fuse& end) {
  const auto others = on.survivors();
  std::vector<std::vector<std::byte>> in(others.size());
  std::vector<std::byte> out((std::size_t{1} << 18) + 2, std::byte{2});
  for (auto& each : in) each.resize(out.size());
  for (int step = 0;; ++step) {
    std::vector<rma::MessageRequest> all;
    for (int turn = 0; turn < 3; ++turn) {
      for (std::size_t i = 0; i < others.size(); ++i) {
        const std::size_t bytes = size_of(on, step, others[i]);
        end.burn();
        all.push_back(on.world.isend(std::span(out.data(), bytes), others[i], step));
        end.burn();
        all.push_back(on.world.irecv(std::span(in[i].data(), bytes), others[i], step));
        end.burn();
        if ((on.seed >> 12) % 2 == 0) on.runtime.progress();
      }
    }
    for (auto& each : all) {
      end.burn();
      each.wait();
    }
  }
}

}  // namespace

void messages_until_killed(stage& on) {
  fuse end{on, on.seed % 997};
  await_others(on);
  exchange_messages(on, end);
}

// Dies between two steps of a protocol, as each of them is: before and after what it sends and posts.
void messages_until_step(stage& on) {
  constexpr std::uint64_t steps_max = 600;  // some hundred messages in
  fuse never{on, ~std::uint64_t{0}};
  await_others(on);
  const p2p_steps::step_counter steps(on.runtime, 1 + on.seed % steps_max, [&] { on.die(); });
  exchange_messages(on, never);
}

}  // namespace faults
