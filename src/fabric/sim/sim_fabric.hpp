// SPDX-License-Identifier: Apache-2.0
/// \file
/// One rank's adapter in the simulated network (src/fabric/sim/wire.hpp): its registered regions and its arrivals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/sim/fifo.hpp"
#include "fabric/sim/wire.hpp"
#include "rma/detail/word.hpp"

namespace rma::sim {

class sim_fabric final : public fabric::network, public fabric::liveness, public fabric::facts {
 public:
  sim_fabric(wire& shared, int rank);
  ~sim_fabric() override;

  [[nodiscard]] const fabric::capabilities& caps() const noexcept override { return wire_.today().caps; }
  [[nodiscard]] bool reaches(int peer) const noexcept override { return peer >= 0 && peer < wire_.job().size(); }

  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override;
  void deregister_region(const fabric::region_key& key) noexcept override { regions_.erase(key.key); }

  status write(int peer, std::span<const fabric::local_slice> from, const fabric::region_key& region,
               std::span<const fabric::remote_slice> to, std::uint64_t token,
               fabric::write_flags how = {}) noexcept override;
  status read(int peer, std::span<const fabric::local_slice> to, const fabric::region_key& region,
              std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept override;
  status fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                   std::uint64_t& old, std::uint64_t token,
                   fabric::posting when = fabric::posting::now) noexcept override;
  status compare_swap(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t expected,
                      std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                      fabric::posting when = fabric::posting::now) noexcept override;
  status send(int peer, std::uint16_t kind, std::span<const std::byte> header,
              std::span<const std::byte> payload) noexcept override;
  status send_bulk(int peer, std::span<const fabric::local_slice> from, std::uint64_t token) noexcept override;
  status post_bulk_receive(int peer, std::span<const fabric::local_slice> to, std::uint64_t token) noexcept override;

  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;

  void forget(int peer) noexcept override;

  bool pending() noexcept override {
    detail::explore_point(this, false);
    (void)post_kept();
    return !arrivals_.empty();
  }
  bool quiet() noexcept override {
    detail::explore_point(this, false);
    return under_way_ == 0 && kept_.empty();
  }
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;

  // ---- for the wire -----------------------------------------------------------------------------------------
  /// True if operations of this peer no longer reach this rank's memory.
  [[nodiscard]] bool has_forgotten(int peer) const noexcept;
  [[nodiscard]] bool has_registered(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] std::uint32_t under_way() const noexcept { return under_way_; }
  [[nodiscard]] std::uint32_t messages_waiting() const noexcept { return messages_waiting_; }
  void begin_one() noexcept { ++under_way_; }
  /// Frees a slot of the send queue.
  void end_one() noexcept;
  void refused() noexcept { refused_ = true; }
  struct completion {
    int peer;
    std::uint64_t token;
    status result;
    std::uint64_t bytes = 0;  ///< bytes that a bulk receive got
    bool chained = false;     ///< it shares the completion of the operation before it
  };
  void put_completion(const completion& c);
  void put_message(int source, std::uint16_t kind, std::vector<std::byte>&& bytes);
  void put_immediate(int source, std::uint32_t immediate);

 private:
  enum class arrival_kind : std::uint8_t { completion, message, immediate };
  struct arrival {
    arrival_kind what;
    status result;
    bool chained;  ///< a completion without an entry of its own
    std::uint16_t kind;
    int source;           ///< for a completion, the peer of the operation
    std::uint64_t value;  ///< token or immediate
    std::uint64_t bytes;  ///< bytes that a bulk receive got
    std::vector<std::byte> payload;
  };
  struct range {
    std::uint64_t address;
    std::uint64_t bytes;
  };
  struct kept_atomic {
    wire::kind what;
    int peer;
    fabric::region_key region;
    std::uint64_t address, operand, expected;
    std::uint64_t* old;
    std::uint64_t token;
  };
  void put(arrival&& a);
  status atomic(const kept_atomic& a, fabric::posting when) noexcept;
  status post_atomic(const kept_atomic& a, bool chained) noexcept;
  /// Posts the kept atomics; false if some found no room.
  bool post_kept() noexcept;
  void report_broken(fabric::sink& to, const arrival& a) noexcept;
  [[nodiscard]] wire::request begin(wire::kind what, int peer, std::uint64_t token,
                                    const fabric::region_key& region) const noexcept;

  wire& wire_;
  int rank_;
  std::uint32_t under_way_ = 0;
  std::uint32_t messages_waiting_ = 0;
  bool refused_ = false;  ///< a post was refused since a slot became free
  const void* refused_at_ = nullptr;
  std::size_t deaths_seen_ = 0;
  std::uint64_t next_key_ = 1;
  std::map<std::uint64_t, range> regions_;
  fifo<arrival> arrivals_;
  std::vector<kept_atomic> kept_;  ///< to one peer, in order
  std::uint64_t atomics_ = 0, atomic_doorbells_ = 0;
  std::vector<int> forgotten_;  ///< peers known to be dead: their arrivals are discarded
};

}  // namespace rma::sim
