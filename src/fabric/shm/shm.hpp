// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of one node: mapped memory, message rings, and cross-memory attach for memory that is not mapped.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fabric/death_notes.hpp"
#include "fabric/fabric.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/shm/bulk_queue.hpp"

namespace rma::shm {

class shm_fabric final : public fabric::network,
                         public fabric::liveness,
                         public fabric::facts,
                         public fabric::reservations {
 public:
  explicit shm_fabric(board& node);

  [[nodiscard]] const fabric::capabilities& caps() const noexcept override { return caps_; }
  /// Called once when all ranks have joined. Nothing is posted before.
  void ranks_are_there() noexcept;
  [[nodiscard]] bool reaches(int peer) const noexcept override { return board_.index_of(peer) < board_.size(); }
  [[nodiscard]] fabric::delivery_guarantee reserve_delivery(int peer, std::size_t bytes) noexcept override;
  [[nodiscard]] bool owes_delivery() noexcept override;

  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override;
  void deregister_region(const fabric::region_key& key) noexcept override;

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
  line_pair* lines_with(int peer) noexcept override;
  void forget(int peer) noexcept override;
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;

  [[nodiscard]] board& node() noexcept { return board_; }

  bool pending() noexcept override;
  bool quiet() noexcept override { return true; }

 private:
  using slices = std::span<const fabric::local_slice>;
  struct bulk_over {
    int peer;
    std::uint64_t token;
    status result;
  };
  struct bulk_state {
    bulk_queue<fabric::local_slice> receives;
    bulk_queue<fabric::remote_slice> arrivals;  ///< sends that have no receive yet
    std::vector<std::uint64_t> sends;           ///< tokens of outstanding sends to the peer
  };
  struct peer_state : line_pair {
    std::unique_ptr<bulk_state> bulk;  ///< null until the bulk channel is used
  };

  std::byte* mapped(std::size_t index, const fabric::region_key& region, std::uint64_t address,
                    std::size_t bytes) const noexcept;
  status write_with_immediate(int peer, slices from, const fabric::region_key& region,
                              std::span<const fabric::remote_slice> to, std::uint32_t immediate) noexcept;
  status copy(bool write, int peer, slices local, const fabric::region_key& region,
              std::span<const fabric::remote_slice> remote) noexcept;
  ring_writer& ring_to(std::size_t index) noexcept;
  void open_new_rings() noexcept;
  void open_rings(std::size_t w, std::uint64_t bits) noexcept;
  unsigned poll_ring(std::size_t index, fabric::sink& to, unsigned limit) noexcept;
  void own_message(std::size_t index, std::uint16_t kind, std::span<const std::byte> payload,
                   fabric::sink& to) noexcept;
  bulk_state& bulk_with(std::size_t index) {
    if (peers_[index].bulk == nullptr) peers_[index].bulk = std::make_unique<bulk_state>();
    return *peers_[index].bulk;
  }
  [[nodiscard]] std::uint64_t shared_place(const fabric::local_slice& here) const noexcept;
  status take_bulk(std::size_t index, slices to, std::span<const fabric::remote_slice> from) noexcept;
  void match_bulk(std::size_t index, fabric::sink& to) noexcept;
  void end_failed(fabric::sink& to) noexcept;
  void take_deaths() noexcept;

  board& board_;
  fabric::capabilities caps_;
  std::vector<peer_state> peers_;       ///< by index on the node
  std::vector<std::uint32_t> active_;   ///< peers that have sent to this rank: their rings are polled
  std::vector<std::uint64_t> known_;    ///< the same set, with a bit for each rank
  std::vector<bulk_over> acknowledge_;  ///< complete bulk sends, to be acknowledged in this order
  std::vector<std::uint64_t> failed_;   ///< tokens of bulk operations whose peers are dead
  fabric::death_notes deaths_;
};

}  // namespace rma::shm
