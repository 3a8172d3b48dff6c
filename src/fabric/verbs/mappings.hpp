// SPDX-License-Identifier: Apache-2.0
/// \file
/// Page ranges of this process, and their mappings.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rma::verbs {

/// Addresses from `first` up to, but not including, `last`.
struct page_range {
  std::uintptr_t first = 0;
  std::uintptr_t last = 0;

  [[nodiscard]] std::size_t bytes() const noexcept { return last - first; }
  [[nodiscard]] void* at() const noexcept { return reinterpret_cast<void*>(first); }
  [[nodiscard]] bool empty() const noexcept { return first >= last; }
  [[nodiscard]] bool covers(page_range other) const noexcept { return first <= other.first && other.last <= last; }
  [[nodiscard]] bool overlaps(page_range other) const noexcept { return first < other.last && other.first < last; }
  friend bool operator==(const page_range&, const page_range&) = default;
};

/// The intersection of both.
constexpr page_range common(page_range a, page_range b) noexcept {
  return {a.first > b.first ? a.first : b.first, a.last < b.last ? a.last : b.last};
}
/// The smallest range that contains both.
constexpr page_range hull(page_range a, page_range b) noexcept {
  return {a.first < b.first ? a.first : b.first, a.last > b.last ? a.last : b.last};
}

struct mapping {
  page_range pages;
  bool private_anonymous = false;  ///< private memory without a file
};

class mapping_visitor {
 public:
  virtual void visit(const mapping& m) noexcept = 0;

 protected:
  ~mapping_visitor() = default;
};

/// Calls `to` for every mapping that overlaps `within`, in ascending order. It takes 0.3 us for each mapping of the
/// process, and neither allocates nor locks. False if /proc/self/maps cannot be read.
bool visit_mappings(page_range within, mapping_visitor& to) noexcept;

/// True if the range has only private memory without a file, and no hole.
bool all_private_anonymous(page_range pages) noexcept;

}  // namespace rma::verbs
