// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric of RDMA adapters, on rdma-core's verbs: reliable connections made at first use, one shared receive queue,
/// one completion queue, and the adapter's writes, reads and atomics.
///
/// The completion of a write means that the target's adapter has it (acked; placed with a device in software). A read,
/// an atomic or a message that is posted later to the same peer finds it in place: the adapter executes the operations
/// of one connection in order.
///
/// The fabric's calls and completions are here; their state has owners of its own:
///
///   connections         peers, queue pairs           broken_connections  entries of those that are broken
///   local_memory        regions, registrations,      send_queues         posting, signals, doorbells
///                       buffers                      queued_transfers    transfers that find a send queue full; chains
///   completion_queue    completions, sleep           bounced_transfers   transfers through buffers
///   bulk_channels       lists of pieces into posted receives
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "fabric/fabric.hpp"
#include "fabric/verbs/adapter.hpp"
#include "fabric/verbs/bounced_transfers.hpp"
#include "fabric/verbs/broken_connections.hpp"
#include "fabric/verbs/buffers.hpp"
#include "fabric/verbs/bulk_channels.hpp"
#include "fabric/verbs/completion_queue.hpp"
#include "fabric/verbs/connections.hpp"
#include "fabric/verbs/local_memory.hpp"
#include "fabric/verbs/open.hpp"
#include "fabric/verbs/queued_transfers.hpp"
#include "fabric/verbs/send_queues.hpp"

namespace rma::verbs {

class verbs_fabric final : public fabric::network, public fabric::liveness, public fabric::facts {
 public:
  /// Throws Error(unreachable, out_of_memory).
  verbs_fabric(std::unique_ptr<adapter> device, const member& who);
  ~verbs_fabric() override;

  /// The address that other ranks connect to, to be published.
  [[nodiscard]] std::string address() const { return connections_.address(); }
  [[nodiscard]] std::size_t entries_per_connection() const noexcept;

  [[nodiscard]] const fabric::capabilities& caps() const noexcept override { return caps_; }
  [[nodiscard]] bool reaches(int peer) const noexcept override { return peer >= 0 && peer < size_; }

  status register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept override;
  void deregister_region(const fabric::region_key& key) noexcept override;
  void expect_pieces(const fabric::piece_bounds& pieces) noexcept override { memory_.expect(pieces); }

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

  /// Looks up the addresses of peers in `job`; called before anything is posted.
  void use(fabric::directory& job) noexcept { connections_.use(job); }
  void forget(int peer) noexcept override { connections_.manager().forget(peer); }
  [[nodiscard]] int event_fd() const noexcept override { return events_; }
  bool pending() noexcept override;
  bool quiet() noexcept override;
  unsigned poll(fabric::sink& to, unsigned limit) noexcept override;
  void counts(const std::function<void(std::string_view, std::uint64_t)>& add) const override;

 private:
  void watch_events();
  void describe_abilities(const member& who);

  status reach(int peer, connection*& c) noexcept {
    const status s = connections_.reach(peer, c);
    return s != status::done || c->resend.empty() ? s : broken_.send_again(*c);
  }
  status transfer(int peer, slices local, send_request& o) noexcept;
  status transfer_pieces(int peer, slices local, std::span<const fabric::remote_slice> remote,
                         const send_request& like) noexcept;
  status post_pieces(connection& c, std::size_t count) noexcept;
  status atomic(int peer, const fabric::region_key& region, std::uint64_t address, send_request& o, std::uint64_t& old,
                fabric::posting when) noexcept;

  void take(const ibv_wc& done, fabric::sink& to) noexcept;
  void take_receive(const ibv_wc& done, fabric::sink& to) noexcept;
  void take_sent(const ibv_wc& done, fabric::sink& to) noexcept;
  void take_broken(fabric::sink& to) noexcept;

  // The order matters: queue pairs are destroyed before the objects that they refer to.
  std::unique_ptr<adapter> device_;
  const int rank_;
  const int size_;
  fabric::capabilities caps_;
  int events_ = -1;  ///< epoll set of the completion channel and the connection manager's news
  completion_queue completions_;
  completion_budget budget_;
  receive_queue receives_;
  local_memory memory_;
  connections connections_;
  send_queues sends_;
  bounced_transfers bounced_;
  queued_transfers queued_;
  broken_connections broken_;
  bulk_channels bulk_;
  std::array<send_request, 16> chain_;   ///< entries to be posted together
  std::uint64_t word_writes_ = 0;        ///< silent writes
  std::uint64_t completions_taken_ = 0;  ///< each stands for one entry or several
};

}  // namespace rma::verbs
