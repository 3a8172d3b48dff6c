// SPDX-License-Identifier: Apache-2.0
/// \file
/// The matching decision of send-gather/receive-scatter: data of two layouts are divided into messages, so that each
/// fits one list on either side. Both sides know both layouts and divide equally: there are as many sends as receives,
/// and each has the length of its receive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "datatype/cursor.hpp"

namespace rma::detail {

struct matching_limits {
  std::size_t pieces = 1;  ///< limit of a list, on the side with the lower limit
  std::size_t bytes = ~std::size_t{0};
};

class matching {
 public:
  /// Keeps references to the layouts, which must have equally many bytes.
  matching(const Layout& here, const Layout& there, matching_limits limits) noexcept
      : here_(here), there_(there), limits_(limits) {}

  [[nodiscard]] bool done() const noexcept { return here_.remaining() == 0; }

  /// The next message: calls piece(offset, bytes) for each piece of it on this side, and returns its bytes.
  template <class Piece>
  std::size_t next(Piece&& piece) noexcept {
    run mine, theirs;
    std::size_t bytes = 0;
    while (here_.remaining() > 0 && bytes < limits_.bytes) {
      const block a = here_.front(), b = there_.front();
      const bool begins_here = mine.begins(a), begins_there = theirs.begins(b);
      if ((begins_here && mine.count == limits_.pieces) || (begins_there && theirs.count == limits_.pieces)) break;
      const std::size_t part = std::min({a.bytes, b.bytes, limits_.bytes - bytes});
      if (begins_here && mine.count != 0) piece(mine.first, mine.bytes);
      mine.add(a.offset, part, begins_here);
      theirs.add(b.offset, part, begins_there);
      here_.advance_in_block(part);
      there_.advance_in_block(part);
      bytes += part;
    }
    if (mine.count != 0) piece(mine.first, mine.bytes);
    return bytes;
  }

 private:
  /// The pieces of one side: adjacent blocks are merged.
  struct run {
    std::ptrdiff_t first = 0;
    std::size_t bytes = 0;
    std::size_t count = 0;

    [[nodiscard]] bool begins(const block& next) const noexcept {
      return count == 0 || next.offset != first + static_cast<std::ptrdiff_t>(bytes);
    }
    void add(std::ptrdiff_t offset, std::size_t part, bool begins) noexcept {
      if (begins) {
        first = offset;
        bytes = 0;
        ++count;
      }
      bytes += part;
    }
  };

  cursor here_, there_;
  matching_limits limits_;
};

/// The stored decision on two layouts: the pieces of this side, message by message.
class transfer_plan {
 public:
  static constexpr std::size_t blocks_max = 2048;  ///< limit of a layout; longer plans would take too much memory

  struct piece {
    std::ptrdiff_t offset;
    std::size_t bytes;
  };

  transfer_plan(const Layout& here, const Layout& there, matching_limits limits)
      : here_(here), there_(there), limits_(limits) {
    for (matching cut(here, there, limits); !cut.done(); ends_.push_back(pieces_.size()))
      cut.next([this](std::ptrdiff_t offset, std::size_t bytes) { pieces_.push_back({offset, bytes}); });
  }

  /// True if it is the decision on these. Comparing layouts that were copied from the plan's costs nothing.
  [[nodiscard]] bool is_for(const Layout& here, const Layout& there, matching_limits limits) const noexcept {
    return limits.pieces == limits_.pieces && limits.bytes == limits_.bytes && here == here_ && there == there_;
  }
  [[nodiscard]] std::size_t messages() const noexcept { return ends_.size(); }
  [[nodiscard]] std::span<const piece> message(std::size_t i) const noexcept {
    const std::size_t first = i == 0 ? 0 : ends_[i - 1];
    return std::span(pieces_).subspan(first, ends_[i] - first);
  }

 private:
  Layout here_, there_;
  matching_limits limits_;
  std::vector<piece> pieces_;
  std::vector<std::size_t> ends_;  ///< end of each message, as an index of pieces
};

/// The number of messages of the decision.
inline std::size_t messages_of(const Layout& here, const Layout& there, matching_limits limits) noexcept {
  std::size_t count = 0;
  for (matching cut(here, there, limits); !cut.done(); ++count) cut.next([](std::ptrdiff_t, std::size_t) {});
  return count;
}

}  // namespace rma::detail
