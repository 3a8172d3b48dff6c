// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

namespace conformance {

std::vector<std::span<const test_case>> all_topics() {
  return {runtime_cases(),
          team_cases(),
          window_cases(),
          dynamic_cases(),
          put_get_cases(),
          layout_cases(),
          huge_cases(),
          operator_cases(),
          atomic_cases(),
          request_cases(),
          handle_cases(),
          fence_cases(),
          pscw_cases(),
          lock_cases(),
          lock_protocol_cases(),
          signal_cases(),
          signal_layout_cases(),
          word_cases(),
          litmus_cases(),
          memory_model_cases(),
          message_cases(),
          misuse_cases(),
          number_cases(),
          try_cases(),
          epoch_misuse_cases(),
          error_text_cases(),
          failed_window_cases(),
          synchronization_cases(),
          thread_cases(),
          p2p_cases(),
          p2p_data_cases(),
          collective_cases(),
          collective_request_cases(),
          collective_ahead_cases(),
          collective_in_place_cases(),
          collective_bits_cases()};
}

}  // namespace conformance
