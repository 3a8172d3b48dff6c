// SPDX-License-Identifier: Apache-2.0
/// \file
/// One job from its start to its exit status: a loop over signals, aborts, time-outs and the ends of ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "boot/server.hpp"
#include "rmarun_cleanup.hpp"
#include "rmarun_io.hpp"
#include "rmarun_options.hpp"
#include "rmarun_process.hpp"

namespace rma::launcher {

class job {
 public:
  explicit job(const settings& asked);
  /// Returns rmarun's exit status.
  int run();

 private:
  /// How a rank ended, if that was a failure.
  struct failure {
    int rank = -1;
    int exit_status = 1;
    std::string text;
  };
  enum class phase : std::uint8_t {
    running,
    suspecting,  ///< a rank failed, but says that another died before it: that one's end is awaited
    ending,      ///< the ranks have been asked to end (TERM)
    killing,     ///< they have been killed
  };

  void prepare_process();
  bool start_ranks();
  [[nodiscard]] std::vector<std::string> changes_for(int rank) const;
  /// The program, and the debugger before it.
  [[nodiscard]] std::vector<std::string> command_of(int rank) const;
  start_outcome start_elsewhere(int rank, const tagged_output::ends& tagged);
  void wait_for_starts();
  bool note_start(int rank, const start_outcome& outcome, const std::string& what);
  void wait_for_events();
  /// Nobody has ended it yet.
  [[nodiscard]] bool ends_itself() const noexcept { return phase_ == phase::running || phase_ == phase::suspecting; }
  /// Until something is to be done; -1: only events matter.
  [[nodiscard]] int wait_ms(int most_ms) const;
  void on_signals();
  void on_signal(int number);
  void on_deadlines();
  void on_abort();
  void reap();
  void on_stop(pid_t pid, int number);
  void on_end(int rank, pid_t pid, int wait_status);
  [[nodiscard]] std::optional<failure> judge(int rank, pid_t pid, int wait_status) const;
  void conclude(const failure& culprit);
  void begin_end(int exit_status);
  void signal_ranks(int number) const;
  [[nodiscard]] std::string running_ranks() const;
  void say_where_ranks_are() const;
  void clean_up();

  const settings asked_;
  std::vector<pid_t> inherited_children_;  ///< children of the process before it became rmarun: not the job's
  const std::string id_;
  const std::string key_;
  inherited_state inherited_;
  boot::unique_fd signals_;
  guardian guardian_;
  std::vector<boot::unique_fd> orders_;  ///< for other hosts, which have not been read
  const std::vector<int> host_of_;       ///< by rank; empty: all on this machine
  boot::server server_;
  tagged_output output_;
  terminal_input input_;
  std::vector<pid_t> pids_;  ///< by rank; -1 once it has ended
  int running_ = 0;
  phase phase_ = phase::running;
  std::optional<int> verdict_;
  failure suspicion_;  ///< failure that is reported if the suspect does not end in time
  int suspect_ = -1;   ///< died before the first failure that was reported
  bool told_of_stop_ = false;
  int end_requests_ = 0;  ///< INT and TERM so far
  boot::boot_clock::time_point timeout_at_ = boot::boot_clock::time_point::max();
  boot::boot_clock::time_point phase_until_ = boot::boot_clock::time_point::max();
};

}  // namespace rma::launcher
