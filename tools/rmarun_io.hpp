// SPDX-License-Identifier: Apache-2.0
/// \file
/// Standard streams of the ranks, where they do not simply inherit rmarun's.
#pragma once

#include <string>
#include <thread>
#include <vector>

#include "boot/socket.hpp"

struct pollfd;

namespace rma::launcher {

/// Lines of the ranks with the rank in front, never mixed. Own thread: a reader that stalls must not stall the job.
class tagged_output {
 public:
  struct ends {
    boot::unique_fd out;
    boot::unique_fd err;
  };

  tagged_output();
  tagged_output(const tagged_output&) = delete;
  tagged_output& operator=(const tagged_output&) = delete;
  ~tagged_output() { finish(); }

  /// The ends that a rank writes to; to be closed here once it has them. Throws std::system_error.
  ends add(int rank);
  /// After the last fork.
  void start();
  /// Passes on what is left and ends the thread. Idempotent.
  void finish();

 private:
  struct stream {
    boot::unique_fd from;
    int to = 1;
    std::string tag;
    std::string line;  ///< begun, not yet ended
  };

  void run();
  bool wait_for_output(std::vector<pollfd>& polled);
  static void take(stream& from);
  static void pass_on(stream& from, bool everything);

  std::vector<stream> streams_;
  boot::unique_fd stop_event_;
  std::thread thread_;
};

/// Carries a terminal's input to rank 0, which is in a process group of its own and so may not read it itself.
class terminal_input {
 public:
  /// The end that rank 0 reads; only if standard input is a terminal.
  boot::unique_fd open();
  /// Adds what it waits for (always two entries, maybe disabled ones). For how many milliseconds, at most; -1: any.
  int watch(std::vector<pollfd>& polled) const;
  void serve(const pollfd& terminal, const pollfd& pipe);

 private:
  void take();

  boot::unique_fd to_;
  std::string pending_;
  bool ended_ = false;  ///< end of input: close once all is written
};

}  // namespace rma::launcher
