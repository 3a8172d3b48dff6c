// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/topology.hpp"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

#include "core/assert.hpp"
#include "rma/error.hpp"

namespace rma::sim {
namespace {

constexpr std::uint64_t places_most = std::uint64_t{1} << 24;
constexpr unsigned hops_most = 1000;
constexpr std::uint32_t arity_default_most = 32;
constexpr const char* forms = "switch, fat-tree, fat-tree:k=16,n=3, torus:8x8 or torus:8x8x4";

[[noreturn]] void not_understood(std::string_view text) {
  throw Error(status::bad_setting, fmt::format("topology '{}' is not one of {}", text, forms));
}
[[noreturn]] void impossible(const std::string& message) { throw Error(status::bad_argument, message); }

/// Removes a number from the front of the text; 0 if there is none in range.
std::uint32_t take_number(std::string_view& text) {
  std::uint32_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return 0;
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// Returns base^exponent, or a number above places_most.
std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  while (exponent-- > 0 && result <= places_most) result *= base;
  return result;
}

}  // namespace

topology::topology(std::string_view text, int nodes) : nodes_(static_cast<std::uint32_t>(nodes)) {
  if (nodes < 1) impossible(fmt::format("a simulated machine of {} nodes is not possible", nodes));
  if (static_cast<std::uint64_t>(nodes) > places_most) {
    impossible(fmt::format("{} nodes are more than the {} that can be simulated", nodes, places_most));
  }
  std::string_view rest = text;
  if (text == "switch") {
    make_switch();
  } else if (take(rest, "fat-tree")) {
    make_fat_tree(text, rest);
  } else if (take(rest, "torus:")) {
    make_torus(text, rest);
  } else {
    not_understood(text);
  }
  if (places_ < nodes_) {
    impossible(fmt::format("topology '{}' has room for {} nodes, {} are needed", text, places_, nodes));
  }
  if (hops_max_ > hops_most) {
    impossible(fmt::format("topology '{}' has routes of {} links, {} are allowed", text, hops_max_, hops_most));
  }
}

void topology::make_switch() {
  places_ = nodes_;
  links_ = 2 * places_;
  hops_max_ = 2;
}

void topology::make_fat_tree(std::string_view text, std::string_view rest) {
  kind_ = kind::fat_tree;
  if (rest.empty()) {
    levels_ = 2;
    while (power(arity_default_most, levels_) < nodes_) ++levels_;
    arity_ = 2;
    while (power(arity_, levels_) < nodes_) ++arity_;
  } else {
    if (!take(rest, ":k=") || (arity_ = take_number(rest)) == 0 || !take(rest, ",n=") ||
        (levels_ = take_number(rest)) == 0 || !rest.empty()) {
      not_understood(text);
    }
    if (arity_ < 2) impossible(fmt::format("topology '{}': k is at least 2", text));
    if (power(arity_, levels_) > places_most) {
      impossible(fmt::format("topology '{}' has more than {} nodes", text, places_most));
    }
  }
  RMA_ASSERT(levels_ <= levels_max);
  for (unsigned level = 0; level <= levels_; ++level) {
    power_[level] = static_cast<std::uint32_t>(power(arity_, level));
  }
  places_ = power_[levels_];
  links_ = 2 * levels_ * places_;
  hops_max_ = 2 * levels_;
}

void topology::make_torus(std::string_view text, std::string_view rest) {
  kind_ = kind::torus;
  std::uint64_t places = 1;
  do {
    const std::uint32_t side = take_number(rest);
    if (side == 0 || dimensions_ == side_.size()) not_understood(text);
    side_[dimensions_++] = side;
    places *= side;
    if (places > places_most) impossible(fmt::format("topology '{}' has more than {} nodes", text, places_most));
  } while (take(rest, "x"));
  if (!rest.empty() || dimensions_ < 2) not_understood(text);
  places_ = static_cast<std::uint32_t>(places);
  links_ = 2 * places_ * (1 + dimensions_);
  hops_max_ = 2 + std::accumulate(side_.begin(), side_.end(), 0U, [](unsigned sum, auto s) { return sum + s / 2; });
}

std::string topology::text() const {
  switch (kind_) {
    case kind::single_switch: return "switch";
    case kind::fat_tree: return fmt::format("fat-tree:k={},n={}", arity_, levels_);
    case kind::torus: break;
  }
  return dimensions_ == 2 ? fmt::format("torus:{}x{}", side_[0], side_[1])
                          : fmt::format("torus:{}x{}x{}", side_[0], side_[1], side_[2]);
}

// ---- routes -------------------------------------------------------------------------------------------------------
//
// Numbers of links: single switch: node n to switch n, switch to node n places + n.
// Fat tree: 2 * places links between each two levels (nodes, switches of level 0, 1, ...), first those that go up. A
// cable above level l is numbered by its lower end, switch * k + port; the port is digit l of the upper switch, which
// shares all other digits with the lower one. A switch's digit i is digit i + 1 of the nodes below it, i >= level.
// Torus: as the single switch, then places links for each direction x+, x-, y+, ... by their source.

unsigned topology::route(int from, int to, link_id* path) const noexcept {
  const auto source = static_cast<std::uint32_t>(from);
  const auto target = static_cast<std::uint32_t>(to);
  RMA_ASSERT(source < nodes_ && target < nodes_ && source != target);
  switch (kind_) {
    case kind::single_switch: break;
    case kind::fat_tree: return route_fat_tree(source, target, path);
    case kind::torus: return route_torus(source, target, path);
  }
  path[0] = source;
  path[1] = places_ + target;
  return 2;
}

std::uint32_t topology::with_digit(std::uint32_t number, unsigned digit, std::uint32_t value) const noexcept {
  const std::uint32_t old = number / power_[digit] % arity_;
  return number + value * power_[digit] - old * power_[digit];
}

unsigned topology::route_fat_tree(std::uint32_t from, std::uint32_t to, link_id* path) const noexcept {
  unsigned hops = 0;
  unsigned level = 0;
  path[hops++] = from;
  std::uint32_t at = from / arity_;
  while (at / power_[level] != to / power_[level + 1]) {
    const std::uint32_t port = to / power_[level] % arity_;
    path[hops++] = 2 * places_ * (level + 1) + at * arity_ + port;
    at = with_digit(at, level, port);
    ++level;
  }
  for (; level > 0; --level) {
    const std::uint32_t port = at / power_[level - 1] % arity_;
    at = with_digit(at, level - 1, to / power_[level] % arity_);
    path[hops++] = 2 * places_ * level + places_ + at * arity_ + port;
  }
  path[hops++] = places_ + to;
  return hops;
}

unsigned topology::route_torus(std::uint32_t from, std::uint32_t to, link_id* path) const noexcept {
  unsigned hops = 0;
  path[hops++] = from;
  std::uint32_t at = from;
  std::uint32_t stride = 1;
  for (unsigned d = 0; d < dimensions_; ++d) {
    const std::uint32_t side = side_[d];
    std::uint32_t here = at / stride % side;
    const std::uint32_t ahead = (to / stride % side + side - here) % side;
    const bool up = 2 * ahead < side || (2 * ahead == side && here % 2 == 0);
    for (std::uint32_t left = up ? ahead : side - ahead; left > 0; --left) {
      path[hops++] = (2 + 2 * d + (up ? 0 : 1)) * places_ + at;
      const std::uint32_t next = up ? (here + 1 == side ? 0 : here + 1) : (here == 0 ? side - 1 : here - 1);
      at = at + next * stride - here * stride;
      here = next;
    }
    stride *= side;
  }
  path[hops++] = places_ + to;
  return hops;
}

// ---- names --------------------------------------------------------------------------------------------------------

topology::end topology::end_of(link_id link, bool target) const noexcept {
  const std::uint32_t block = link / places_;
  const std::uint32_t index = link % places_;
  if (block < 2) {  // a node's own cable: the node is the source of its upward link and the target of its downward link
    if ((block == 0) != target) return {true, 0, index};
    return {false, 0, kind_ == kind::torus ? index : kind_ == kind::fat_tree ? index / arity_ : 0};
  }
  if (kind_ == kind::fat_tree) {
    const unsigned level = block / 2;  // level of the upper end
    const bool upwards = block % 2 == 0;
    const std::uint32_t lower = index / arity_;
    if (upwards != target) return {false, level - 1, lower};
    return {false, level, with_digit(lower, level - 1, index % arity_)};
  }
  if (!target) return {false, 0, index};
  const unsigned d = (block - 2) / 2;
  const std::uint32_t stride = std::accumulate(side_.begin(), side_.begin() + d, 1U, std::multiplies<>());
  const std::uint32_t here = index / stride % side_[d];
  const std::uint32_t next = (block % 2 == 0 ? here + 1 : here + side_[d] - 1) % side_[d];
  return {false, 0, index + next * stride - here * stride};
}

topology::end topology::source_of(link_id link) const noexcept { return end_of(link, false); }
topology::end topology::target_of(link_id link) const noexcept { return end_of(link, true); }

std::string topology::name_of(const end& of) const {
  if (of.is_node) return fmt::format("node {}", of.index);
  switch (kind_) {
    case kind::single_switch: return "switch";
    case kind::fat_tree: return fmt::format("switch {}.{}", of.level, of.index);
    case kind::torus: break;
  }
  const std::uint32_t x = of.index % side_[0];
  const std::uint32_t y = of.index / side_[0] % side_[1];
  const std::uint32_t z = of.index / side_[0] / side_[1];
  return dimensions_ == 2 ? fmt::format("router ({},{})", x, y) : fmt::format("router ({},{},{})", x, y, z);
}

std::string topology::name_of(link_id link) const {
  return fmt::format("{} -> {}", name_of(source_of(link)), name_of(target_of(link)));
}

unsigned topology::groups() const noexcept { return links_ / places_; }
unsigned topology::group_of(link_id link) const noexcept { return link / places_; }

std::string topology::group_name(unsigned group) const {
  const char* router = kind_ == kind::torus ? "router" : "switch";
  if (group == 0) return fmt::format("node to {}", router);
  if (group == 1) return fmt::format("{} to node", router);
  if (kind_ == kind::torus) return fmt::format("{}{}", "xyz"[(group - 2) / 2], group % 2 == 0 ? '+' : '-');
  const unsigned upper = group / 2;
  return group % 2 == 0 ? fmt::format("switch level {} to {}", upper - 1, upper)
                        : fmt::format("switch level {} to {}", upper, upper - 1);
}

}  // namespace rma::sim
