// SPDX-License-Identifier: Apache-2.0
/// \file
/// Entries of a connection that is broken, or whose peer is dead, end here. Messages are sent again on its
/// next generation. Of operations it is not known at first why they failed: a process that dies takes its memory away
/// before its queue pairs, so that an operation that comes meanwhile is refused as one that should not have been.
/// Whoever lives answers to the next greeting, also while it computes; a peer that does not is lost.
#pragma once

#include <vector>

#include "fabric/verbs/bounced_transfers.hpp"
#include "fabric/verbs/connections.hpp"
#include "fabric/verbs/local_memory.hpp"
#include "fabric/verbs/queued_transfers.hpp"
#include "fabric/verbs/send_queues.hpp"

namespace rma::verbs {

class broken_connections {
 public:
  broken_connections(connections& all, local_memory& memory, send_queues& queues, bounced_transfers& bounced,
                     queued_transfers& queued) noexcept
      : all_(all), memory_(memory), queues_(queues), bounced_(bounced), queued_(queued) {}

  [[nodiscard]] bool have_doubts() const noexcept { return !doubted_.empty(); }
  [[nodiscard]] bool have_unsent() const noexcept { return !unsent_.empty(); }
  /// Nothing is to be sent again, and no operation is unresolved.
  [[nodiscard]] bool empty() const noexcept { return !have_doubts() && !have_unsent(); }
  /// The connection is broken, or its peer is dead (not for bulk channels). If it is broken it is made anew.
  void take(connection& c, fabric::sink& to) noexcept;
  /// Ends operations once it is known why they failed.
  void resolve_doubts(fabric::sink& to) noexcept;
  /// Sends messages again: their sender may do nothing else than wait for the answer.
  void go_on() noexcept;
  /// Sends what the last generation of the connection may have lost. Not `done`: it has to wait.
  status send_again(connection& c) noexcept;

 private:
  void abandon(connection& c, status result, fabric::sink& to) noexcept;
  void end_doubtful(connection& c, status result, fabric::sink& to) noexcept;

  connections& all_;
  local_memory& memory_;
  send_queues& queues_;
  bounced_transfers& bounced_;
  queued_transfers& queued_;
  std::vector<connection*> doubted_;  ///< those with operations of which it is not known why they failed
  std::vector<connection*> unsent_;   ///< those with messages to send again
};

/// Posts a message whose text is in its buffer, and whose kind and number are its token.
status post_message(send_queues& queues, connection& c, send_request& o) noexcept;

}  // namespace rma::verbs
