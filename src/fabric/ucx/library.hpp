// SPDX-License-Identifier: Apache-2.0
/// \file
/// UCP's context and worker of one runtime, and what they can do here.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/ucx/calls.hpp"

namespace rma::ucx {

/// Of UCX's description of a context: the transports that lead to other processes.
std::vector<std::string> transports_of_context(std::string_view text);

/// Closed the other way round: worker, then context.
class library {
 public:
  /// `only_to_look`: what there is, without a worker, so that nothing can be sent.
  enum class purpose : std::uint8_t { to_send, only_to_look };

  /// Takes the UCX_* settings of the environment. Throws Error(unreachable) that says what UCX refused.
  explicit library(purpose what = purpose::to_send);
  ~library();
  library(const library&) = delete;
  library& operator=(const library&) = delete;

  [[nodiscard]] const calls& ucx() const noexcept { return ucx_; }
  [[nodiscard]] ucp_context_h context() const noexcept { return context_; }
  [[nodiscard]] ucp_worker_h worker() const noexcept { return worker_; }
  [[nodiscard]] bool has_atomics() const noexcept { return atomics_; }
  /// Whether endpoints report that their peer is gone. UCX's shared memory does not.
  [[nodiscard]] bool watches_peers() const noexcept { return watches_peers_; }
  /// Whether UCX may only send messages to other processes, of which its software at the target makes puts, gets and
  /// atomics. It ends that process if the origin dies meanwhile: such operations are better made of messages here.
  [[nodiscard]] bool only_messages() const noexcept;
  /// Whether UCX may use a network besides TCP.
  [[nodiscard]] bool has_network() const noexcept;
  /// Readable when there is news after the worker was armed.
  [[nodiscard]] int event_fd() const noexcept { return events_; }
  /// Of the worker, as others have to give it to UCX; may contain any byte.
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
