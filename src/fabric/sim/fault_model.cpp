// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/fault_model.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <utility>

#include "rma/error.hpp"

namespace rma::sim {
namespace {

constexpr time_ps us = 1'000'000;
constexpr std::size_t message_bytes = 4096;

/// These limits divide transfers with layouts. They have an rng of their own, so that other values do not change.
void draw_limits(fault_model& w, rng d) {
  w.caps.scatter_max = d.one_of<std::size_t>({1, 2, 30});
  w.outstanding_reads_max = d.one_of<std::uint32_t>({1, 4, 16});
  w.caps.handler_pieces_bytes_max = d.one_of<std::size_t>({0, 512, ~std::size_t{0}});
  if (d.one_in(5)) w.caps.bulk_pieces_max = 0;
}

/// The capabilities that a fabric may lack, drawn by an rng of their own.
void draw_abilities(fault_model& w, rng d) {
  w.caps.write_with_immediate = !d.one_in(4);
  w.caps.atomics = !d.one_in(4);
  w.caps.message_bytes_max = d.one_of<std::size_t>({fabric::message_bytes_min, 1000, message_bytes, message_bytes});
  w.caps.inline_bytes_max = d.one_of<std::size_t>({0, 64, 256});
}

}  // namespace

breach breach_named(std::string_view name) {
  constexpr std::pair<std::string_view, breach> all[] = {
      {"none", breach::none},
      {"read_overtakes", breach::read_overtakes},
      {"early_completion", breach::early_completion},
      {"lost_write", breach::lost_write},
      {"lost_message", breach::lost_message},
      {"double_message", breach::double_message},
      {"blind_swap", breach::blind_swap},
      {"swallowed_error", breach::swallowed_error},
  };
  std::string known;
  for (const auto& [text, value] : all) {
    if (text == name) return value;
    known += fmt::format(" {}", text);
  }
  throw Error(status::bad_argument,
              fmt::format("'{}' is no breach of the fabric's contract; there are:{}", name, known));
}

fault_model calm() {
  fault_model w;
  w.caps.name = "sim";
  w.caps.gather_max = 30;
  w.caps.scatter_max = 30;
  w.caps.bulk_pieces_max = 50;
  w.caps.inline_bytes_max = 0;
  w.caps.message_bytes_max = message_bytes;
  w.caps.transfer_bytes_max = std::size_t{1} << 30;
  w.outstanding_reads_max = 16;
  w.caps.write_means = fabric::write_completion::placed;
  w.caps.in_order_placement = true;
  w.caps.polls = fabric::polled_end::both;
  w.caps.messages_after_writes = true;
  w.caps.write_with_immediate = true;
  w.caps.atomics = true;
  w.caps.words = true;
  w.caps.one_sided = true;
  w.receiver_not_ready_ps = 10 * us;
  return w;
}

std::uint32_t error_rate(std::uint64_t seed) { return rng(seed ^ 0xe7707).one_of<std::uint32_t>({20, 60, 300}); }

fault_model storm(std::uint64_t seed) {
  using fabric::write_completion;
  rng d(seed);
  fault_model w = calm();
  w.caps.write_means = d.one_of({write_completion::local, write_completion::acked, write_completion::placed});
  w.caps.in_order_placement = d.one_in(2);
  w.caps.messages_after_writes = d.one_in(2);
  w.caps.gather_max = d.one_of<std::size_t>({1, 2, 30});
  w.caps.remote_slices_max = d.one_of<std::size_t>({1, 1, 4});
  w.caps.transfer_bytes_max = d.one_of<std::size_t>({256, 4096, std::size_t{1} << 30});
  w.caps.one_sided = !d.one_in(6);
  w.caps.words = w.caps.messages_after_writes && w.caps.one_sided;
  w.send_queue = d.one_of<std::uint32_t>({1, 2, 7, 64, 1024});
  w.receive_queue = d.one_of<std::uint32_t>({1, 3, 16, 1024});
  w.receiver_not_ready_ps = static_cast<time_ps>(1 + d.below(50)) * us;
  w.placement_delay_max_ps =
      w.caps.write_means == write_completion::placed ? 0 : static_cast<time_ps>(d.below(20)) * us;
  w.jitter_max_ps = static_cast<time_ps>(d.one_of<std::uint64_t>({0, 1, 10, 100})) * us;
  w.refused_one_in = d.one_of<std::uint32_t>({0, 2, 5});
  w.slow_rank = static_cast<int>(d.below(8)) - 2;  // often none, or no rank of the job
  w.slow_times = static_cast<std::uint32_t>(1 + d.below(50));
  w.outages = static_cast<std::uint32_t>(d.below(4));
  w.outage_ps = static_cast<time_ps>(1 + d.below(500)) * us;
  w.outages_until_ps = 20'000 * us;
  w.caps.pins_memory = d.one_in(2);
  w.caps.bulk_pieces_max = d.one_of<std::size_t>({1, 3, 50});
  w.caps.handler_bytes_max = d.one_of<std::size_t>({0, 512, ~std::size_t{0}});
  rng other(seed ^ 0x9011);  // its draws do not change those of `d`
  const auto polls = other.one_of(
      {fabric::polled_end::none, fabric::polled_end::write, fabric::polled_end::read, fabric::polled_end::both});
  w.caps.polls = w.caps.in_order_placement ? polls : fabric::polled_end::none;
  draw_limits(w, rng(seed ^ 0x11417));
  draw_abilities(w, rng(seed ^ 0xab1e));
  return w;
}

}  // namespace rma::sim
