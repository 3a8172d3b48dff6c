// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a communication pattern: the ranks' calls become transfers of the network model, whose reports wake the ranks.
///
///   put:       T_pp, post --> engine, links, engine --> noticed T_pp later: poll
///                             control packet back    --> noticed T_pp later: complete
///   get:       request without data --> answer, posted by the source's adapter
///   barrier:   in round i a token to the rank 2^i further on
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fabric/sim/network_model.hpp"
#include "fabric/sim/world.hpp"
#include "rma/sim_pattern.hpp"

namespace rma::sim {

class pattern_job final : public transfer_sink {
 public:
  pattern_job(const Config& job, IntraNode intra_node);

  PatternOutcome run(const std::function<void(PatternRank&)>& rank_main);

  // ---- calls of a rank, from its fiber ------------------------------------------------------------------------
  [[nodiscard]] const world& job() const noexcept { return world_; }
  PatternHandle start(int rank, bool is_get, int other, std::int64_t bytes, int tag);
  void poll(int rank, int tag, int count);
  void complete(int rank, PatternHandle handle);
  void complete_all(int rank);
  void compute(int rank, picoseconds time);
  void barrier(int rank);
  void phase(int rank, std::string_view label);

  // ---- news from the network ----------------------------------------------------------------------------------
  void on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept override;
  void on_arrival(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept override;
  void on_acknowledgement(transfer_id id) noexcept override;

 private:
  struct operation {
    int origin;
    int other;
    int tag;  ///< tag of a put
    bool is_get;
    bool intra_node;
    bool completed = false;
    std::uint64_t bytes;
    std::uint64_t bytes_left;  ///< bytes that have not arrived
    time_ps called_ps;
    time_ps ready_ps;  ///< when an idle engine could start
    time_ps started_ps = 0;
    time_ps sent_ps = 0;
  };
  enum class wait : std::uint8_t { none, completion, data, token };
  struct rank_state {
    wait what = wait::none;
    std::size_t which = 0;                             ///< operation, tag or round
    std::uint64_t wanted = 0;                          ///< count that ends the wait
    std::vector<std::size_t> open{};                   ///< operations that complete_all() has not completed yet
    std::unordered_map<int, std::uint64_t> arrived{};  ///< by tag, not yet polled
    std::vector<std::uint64_t> token_bytes{};          ///< by round, of all barriers together
    std::uint64_t barriers = 0;
    std::size_t phase = no_phase;
    time_ps phase_since_ps = 0;
    std::vector<time_ps> phases_ps{};
  };
  static constexpr std::size_t no_phase = static_cast<std::size_t>(-1);

  // A transfer's id encodes its meaning: an operation's number and whether it is a get's reply, or a token's round and
  // target.
  static constexpr transfer_id token_mark = transfer_id{1} << 63;
  static constexpr unsigned rank_bits = 32;
  static constexpr transfer_id token_id(unsigned round, int to) noexcept {
    return token_mark | transfer_id{round} << rank_bits | static_cast<std::uint32_t>(to);
  }

  static constexpr transfer_id round_mask = 0xFF;
  static constexpr unsigned bytes_shift = 48;
  static constexpr transfer_id bytes_mask = 0xFF;
  static constexpr transfer_id with_bytes(transfer_id token, std::uint64_t bytes) noexcept {
    return token | bytes << bytes_shift;
  }

  template <void (pattern_job::*Member)(std::uint64_t) noexcept>
  void when_noticed(std::uint64_t data);

  [[nodiscard]] rank_state& of(int rank) noexcept { return states_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const rank_state& of(int rank) const noexcept { return states_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] bool holds(const rank_state& s) const noexcept;
  void await(int rank, wait what, std::size_t which, std::uint64_t wanted);
  void look(int rank) noexcept;
  void check_rank(std::string_view call, int other) const;
  [[nodiscard]] std::uint64_t checked_bytes(std::string_view call, std::int64_t bytes) const;

  void post(std::size_t number);
  void copy(std::size_t number);
  void answer(operation& get, transfer_id id) noexcept;
  void data_noticed(std::uint64_t number) noexcept;
  void completion_noticed(std::uint64_t number) noexcept;
  void token_noticed(std::uint64_t id) noexcept;
  [[nodiscard]] time_ps engine_time(std::uint64_t bytes) const noexcept;
  void count(const operation& done) noexcept;

  int run_rank(int rank, const std::function<void(PatternRank&)>& rank_main);
  void close_phase(int rank);
  [[nodiscard]] std::string describe(int rank) const;
  [[nodiscard]] std::string report() const;
  [[nodiscard]] PatternOutcome outcome(time_ps stopped_ps);
  void add_network(PatternOutcome& out) const;

  world world_;
  network_model network_;
  const IntraNode intra_node_;
  std::vector<rank_state> states_;
  std::vector<operation> operations_{};
  std::vector<std::string> labels_{};
  TransferUse use_[2]{};      ///< in the network, within nodes
  std::uint64_t events_ = 0;  ///< events that have run
  std::exception_ptr error_{};
  int error_rank_ = -1;
};

}  // namespace rma::sim
