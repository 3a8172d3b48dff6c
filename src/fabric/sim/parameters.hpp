// SPDX-License-Identifier: Apache-2.0
/// \file
/// The constants of a simulated machine, read from text: `name = value unit  # where the value comes from`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fabric/sim/event_queue.hpp"

namespace rma::sim {

/// Each member is one line of the text, of the same name without the unit at its end (`cable_latency = 0.6 ns`).
/// parameters.cpp has the meaning of each and the limits of its values.
struct parameters {
  // network
  double link_bandwidth_gbs = 0;
  double switch_throughput_gbs = 0;
  time_ps cable_latency_ps = 0;
  time_ps routing_time_ps = 0;
  time_ps vc_allocation_time_ps = 0;
  time_ps switch_allocation_time_ps = 0;
  time_ps switch_latency_ps = 0;
  std::uint64_t store_and_forward = 0;
  std::uint64_t packet_payload_bytes = 0;
  std::uint64_t packet_header_bytes = 0;
  std::uint64_t control_packet_bytes = 0;
  std::uint64_t port_buffers = 0;
  // adapter
  double dma_speed_gbs = 0;
  double dma_write_speed_gbs = 0;
  std::uint64_t dma_engines = 0;
  std::uint64_t dma_receive_engines = 0;
  time_ps pcie_latency_ps = 0;
  std::uint64_t inline_payload_bytes = 0;
  time_ps nic_packet_time_ps = 0;
  time_ps nic_message_time_ps = 0;
  time_ps nic_message_gap_ps = 0;
  time_ps nic_list_entry_time_ps = 0;
  time_ps atomic_service_time_ps = 0;
  // node
  time_ps library_overhead_ps = 0;
  time_ps post_time_ps = 0;
  time_ps list_entry_time_ps = 0;
  time_ps completion_time_ps = 0;
  time_ps registration_page_time_ps = 0;
  time_ps poll_time_ps = 0;
  time_ps handler_time_ps = 0;
  time_ps spin_time_ps = 0;
  time_ps wake_time_ps = 0;
  time_ps copy_latency_ps = 0;
  double copy_bandwidth_gbs = 0;
  double memory_bandwidth_gbs = 0;

  /// The time until a rank that has waited so long runs again: it polls for `spin_time`, then sleeps.
  [[nodiscard]] time_ps awake_after_ps(time_ps waited_ps) const noexcept {
    return waited_ps < spin_time_ps ? poll_time_ps : wake_time_ps;
  }
  /// The speed of writes to memory.
  [[nodiscard]] double write_speed_gbs() const noexcept {
    return dma_write_speed_gbs > 0 ? dma_write_speed_gbs : dma_speed_gbs;
  }
  /// The time from a router's input to its output, without contention.
  [[nodiscard]] time_ps router_delay_ps() const noexcept {
    return routing_time_ps + vc_allocation_time_ps + switch_allocation_time_ps + switch_latency_ps;
  }
};

/// The time that so many bytes take at that speed, to the nearest picosecond.
constexpr time_ps time_of(std::uint64_t bytes, double gbs) noexcept {
  return static_cast<time_ps>(static_cast<double>(bytes) * 1000.0 / gbs + 0.5);
}

/// Loads the parameters of a preset, or of a file if the name has a `/` or a `.` in it.
/// Errors     Error(bad_setting): no such preset or file, or a mistake in it, with its line
parameters load_parameters(std::string_view preset_or_path);

/// Parses parameters; a first line `base = <preset>` supplies those that the text does not set.
/// `origin` names the text in error messages.
parameters parse_parameters(std::string_view text, std::string_view origin);

/// Formats parameters as text that parse_parameters reads.
std::string to_text(const parameters& of);

/// A preset that is compiled into the library.
struct preset {
  std::string_view name;
  std::string_view text;
};
std::span<const preset> presets() noexcept;

}  // namespace rma::sim
