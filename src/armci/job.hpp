// SPDX-License-Identifier: Apache-2.0
/// \file
/// The interface to the launcher of ARMCI's processes: MPI, or rmarun and the like.
#pragma once

#include <cstddef>
#include <memory>

#include "armci/state.hpp"

namespace rma::armci {

class job {
 public:
  struct received {
    std::size_t bytes = 0;
    int from = -1;
  };

  job() = default;
  job(const job&) = delete;
  job& operator=(const job&) = delete;
  virtual ~job() = default;

  /// The Config with which the Runtime is started.
  [[nodiscard]] virtual Config config() const = 0;
  /// The communicator of all processes, as group_state stores it; 0 where there is none.
  [[nodiscard]] virtual std::uint64_t communicator() const noexcept { return 0; }
  /// Ends all processes. May return.
  virtual void abort(int code) noexcept = 0;
  virtual void send(state& s, int tag, const void* data, std::size_t bytes, int to) = 0;
  /// `from` -1: any. Ends the job if the message is longer than `room`.
  virtual received receive(state& s, int tag, void* data, std::size_t room, int from) = 0;
};

/// The job of processes that rmarun, PMIx or a Config's environment introduces to each other; messages are this
/// library's.
std::unique_ptr<job> make_plain_job();
/// True if the environment shows that rmarun has started this process.
bool is_started_by_rmarun() noexcept;

/// Starts ARMCI, or counts one more start. Collective.
int start(std::unique_ptr<job> (*launch)(void* what), void* what, int requested);

}  // namespace rma::armci
