// SPDX-License-Identifier: Apache-2.0
/// \file
/// A word for the probe of the machine, in a page that all ranks of one machine map, whatever the library under test
/// makes of their memory: it may take them for nodes of their own, or be unable to share any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "perf.hpp"

namespace perf {

class shared_line {
 public:
  /// Every rank of the job makes one, at the same time.
  explicit shared_line(const job& with);
  shared_line(const shared_line&) = delete;
  shared_line& operator=(const shared_line&) = delete;
  ~shared_line();

  /// Null if some rank has no such page, as on another machine, or in a simulated job.
  [[nodiscard]] std::uint64_t* word() const noexcept { return usable_ ? page_ : nullptr; }

 private:
  static constexpr std::size_t bytes = 4096;
  std::uint64_t* page_ = nullptr;
  bool usable_ = false;
};

}  // namespace perf
