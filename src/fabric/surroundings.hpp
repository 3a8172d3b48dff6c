// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a rank's surroundings offer to its waits: time, sleep, and news of deaths. One for real machines
/// (src/fabric/shm/node_surroundings), one for the simulator.
#pragma once

#include <cstdint>
#include <vector>

namespace rma::detail {

class surroundings {
 public:
  virtual ~surroundings() = default;

  [[nodiscard]] virtual std::int64_t now_ns() noexcept = 0;
  /// The program computes for so long: virtual time passes, real time does not.
  virtual void compute(std::int64_t work_ns) noexcept = 0;
  /// This rank is inside the library and runs handlers, or has gone back to the program.
  virtual void inside(bool yes) noexcept = 0;
  /// Lets another rank on this core run.
  virtual void yield() noexcept = 0;
  /// From here on whoever has news rings the doorbell. Look once more for news, then `sleep`.
  virtual void arm() noexcept = 0;
  /// Until the doorbell rings, at most so long. `retract` instead if news was found after `arm`.
  virtual void sleep(std::int64_t timeout_ns) noexcept = 0;
  virtual void retract() noexcept = 0;
  /// Rings the doorbell of a rank on this node. A full fence lies between the news and this call.
  virtual void ring(int world_rank) noexcept = 0;
  /// Appends ranks whose death was seen since the last call.
  virtual void look_for_deaths(std::vector<int>& died) noexcept = 0;
  /// True if this rank has left in good order.
  [[nodiscard]] virtual bool has_left(int world_rank) noexcept = 0;
  /// True if there are more ranks than cores here: spinning keeps others from running.
  [[nodiscard]] virtual bool oversubscribed() const noexcept = 0;
};

}  // namespace rma::detail
