// SPDX-License-Identifier: Apache-2.0
#include "random_access_run.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace random_access {

Progress::Progress(rma::Runtime& rt, word total, std::string what)
    : rt_(rt),
      total_(rt.rank() == 0 && isatty(STDERR_FILENO) == 1 ? total : 0),
      what_(std::move(what)),
      begin_(rt.now()),
      shown_(begin_) {}

Progress::~Progress() {
  if (shown_ != begin_) fmt::print(stderr, "\r{:60}\r", "");
}

void Progress::show(word done) const {
  if (total_ == 0) return;
  const auto now = rt_.now();
  if (now - shown_ < std::chrono::seconds(1)) return;
  shown_ = now;
  const std::chrono::duration<double> elapsed = now - begin_;
  const double share = static_cast<double>(done) / static_cast<double>(total_);
  fmt::print(stderr, "\r{}: {:3.0f} %, {:.0f} s left   ", what_, 100 * share, elapsed.count() * (1 / share - 1));
  std::fflush(stderr);
}

void make_updates(rma::Runtime& rt, Updater& updater, Stream stream, std::size_t stored, const Progress& progress) {
  std::array<word, stored_updates_max> randoms{};
  const word total = stream.left();
  while (stream.left() > 0) {
    const std::size_t count = static_cast<std::size_t>(std::min<word>(stored, stream.left()));
    for (std::size_t i = 0; i < count; ++i) randoms[i] = stream.draw();
    rt.compute(time_to_draw(count));
    updater.apply(std::span(randoms).first(count));
    progress.show(total - stream.left());
  }
  updater.finish();
}

}  // namespace random_access
