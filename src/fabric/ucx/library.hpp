// SPDX-License-Identifier: Apache-2.0
/// \file
/// UCP's context and worker of one runtime, and their abilities on this machine.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/ucx/calls.hpp"

namespace rma::ucx {

/// The transports to other processes in UCX's description of a context.
std::vector<std::string> transports_of_context(std::string_view text);

/// The destructor closes the worker, then the context.
class library {
 public:
  /// With `only_to_look` there is no worker, and nothing can be sent.
  enum class purpose : std::uint8_t { to_send, only_to_look };

  /// Uses the UCX_* settings of the environment. Throws Error(unreachable) with the step that failed in UCX.
  explicit library(purpose what = purpose::to_send);
  ~library();
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  [[nodiscard]] const calls& ucx() const noexcept { return ucx_; }
  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }
  [[nodiscard]] ucp_worker_h worker() const noexcept { return worker_; }
  [[nodiscard]] bool has_atomics() const noexcept { return atomics_; }
  /// True if endpoints report that their peer has ended. UCX's shared memory does not.
  [[nodiscard]] bool watches_peers() const noexcept { return watches_peers_; }
  /// True if UCX can only send messages to other processes, and emulates puts, gets and atomics in software at the
  /// target. This aborts the target if the origin dies meanwhile, so that this fabric makes such operations of messages
  /// itself.
  [[nodiscard]] bool only_messages() const noexcept;
  /// True if UCX may use a network besides TCP.
  [[nodiscard]] bool has_network() const noexcept;
  /// Readable when an event has arrived after the worker was armed.
  [[nodiscard]] int event_fd() const noexcept { return events_; }
  /// The worker's address, which other processes pass to UCX; it may contain any byte.
  [[nodiscard]] std::string address() const;

 private:
  void open_context();
  ucs_status_t open_context(const ucp_config_t* config);
  void open_worker();
  void try_watching();
  void look_at_transports();

  calls ucx_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int events_ = -1;
  bool atomics_ = false;
  bool watches_peers_ = false;
  std::vector<std::string> transports_;
};

}  // namespace rma::ucx
