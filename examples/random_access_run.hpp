// SPDX-License-Identifier: Apache-2.0
/// \file
/// Drawing updates from the stream and making them.
#pragma once

#include <chrono>
#include <cstddef>
#include <rma/rma.hpp>
#include <string>

#include "random_access_update.hpp"

namespace random_access {

/// The time that a processor takes to draw so many numbers and find their places, for the simulator's clock.
constexpr std::chrono::nanoseconds time_to_draw(word count) noexcept {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(2 * count));
}

/// A line on standard error that is rewritten every second, if a person is there to read it.
class Progress {
 public:
  /// `total` updates; 0: says nothing.
  Progress(rma::Runtime& rt, word total, std::string what);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void show(word done) const;

 private:
  rma::Runtime& rt_;
  word total_;
  std::string what_;
  std::chrono::nanoseconds begin_;
  mutable std::chrono::nanoseconds shown_;
};

/// Makes this rank's updates, at most `stored` at a time. They are all in their tables when it returns.
void make_updates(rma::Runtime& rt, Updater& updater, Stream stream, std::size_t stored, const Progress& progress);

}  // namespace random_access
