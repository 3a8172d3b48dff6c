// SPDX-License-Identifier: Apache-2.0
/// \file
/// Nothing stays behind: finding and killing what the ranks started, and the guardian that does it if rmarun cannot.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "boot/socket.hpp"

namespace rma::launcher {

/// The variable that marks every process of a job; a job inside a job has the names of both.
inline constexpr const char* job_variable = "RMA_JOB";

/// Kills all processes whose environment names the job, wherever they have gone: own groups, sessions, parents. Waits
/// for their ends, not longer than `until`.
void kill_marked(const std::string& job, boot::boot_clock::time_point until);

/// The children of this process, as the kernel knows them (descendants whose parents have died are among them).
std::vector<pid_t> children();

/// A tiny process that waits for the death of rmarun, then kills what is left of the job, and ends.
class guardian {
 public:
  /// To be made before there are threads or other children.
  explicit guardian(const std::string& job);
  guardian(const guardian&) = delete;
  guardian& operator=(const guardian&) = delete;
  ~guardian();  ///< if not dismissed, it cleans up as after rmarun's death

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Ends it: rmarun has cleaned up by itself.
  void dismiss();

 private:
  void wait_for_its_end();

  boot::unique_fd leash_;  ///< its end wakes the guardian, and so does a byte
  pid_t pid_ = -1;
};

}  // namespace rma::launcher
