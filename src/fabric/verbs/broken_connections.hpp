// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ends the entries of a connection that is broken, or whose peer is dead. Messages are sent again on its next
/// generation. The reason of a failed operation is unknown at first: a dying process loses its memory before its queue
/// pairs, so that an operation that arrives in between is refused like an erroneous one. A live peer replies to the
/// next greeting, even while it computes; a peer that does not reply is dead.
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
  /// True if no message is to be sent again, and no operation is unresolved.
  [[nodiscard]] bool empty() const noexcept { return !have_doubts() && !have_unsent(); }
  /// Takes a connection (not a bulk channel) that is broken, or whose peer is dead. Reconnects it if it is broken.
  void take(connection& c, fabric::sink& to) noexcept;
  /// Ends operations when the reason of their failure is known.
  void resolve_doubts(fabric::sink& to) noexcept;
  /// Sends messages again: their sender may do nothing but wait for the reply.
  void go_on() noexcept;
  /// Sends the messages that the connection's last generation may have lost. A status other than `done` means that they
  /// have to wait.
  status send_again(connection& c) noexcept;

 private:
  void abandon(connection& c, status result, fabric::sink& to) noexcept;
  void end_unresolved(connection& c, status result, fabric::sink& to) noexcept;

  connections& all_;
  local_memory& memory_;
  send_queues& queues_;
  bounced_transfers& bounced_;
  queued_transfers& queued_;
  std::vector<connection*> doubted_;  ///< connections with operations that failed for an unknown reason
  std::vector<connection*> unsent_;   ///< connections with messages to send again
};

/// Posts a message: its buffer has the text, its token the kind and the number.
status post_message(send_queues& queues, connection& c, send_request& o) noexcept;

}  // namespace rma::verbs
