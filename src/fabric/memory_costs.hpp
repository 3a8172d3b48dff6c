// SPDX-License-Identifier: Apache-2.0
/// \file
/// Expected costs of messages between ranks that share memory. The defaults are figures of a recent x86-64 server;
/// rma-tune measures those of a machine.
#pragma once

namespace rma::fabric {

struct memory_costs {
  double latency_ns = 250;         ///< latency of a short message
  double message_ns = 80;          ///< to send or to receive one, beside others
  double byte_ns = 0.05;           ///< in a short message
  double rendezvous_ns = 750;      ///< latency of a long message
  double long_byte_ns = 0.05;      ///< in a long message
  double combined_byte_ns = 0.03;  ///< time per byte to combine an operand with another one
};

}  // namespace rma::fabric
