// SPDX-License-Identifier: Apache-2.0
/// \file
/// The links that a packet crosses between two nodes.
///
///   switch             one switch with a port for every node
///   fat-tree           k-ary n-tree, the smallest with switches of at most 64 ports
///   fat-tree:k=16,n=3  the k-ary n-tree: n levels of switches with k ports down and k up, k^n nodes
///   torus:8x8          a router at each node, links along each dimension, closed to rings; also torus:8x8x4
///
/// Routes are fixed. Up a fat tree the port is the target's digit of that level (d-mod-k), so that packets to one
/// target meet as late as they can; in a torus a packet is routed along one dimension after the other, the shorter way
/// round; where both ways are equal, up from even and down from odd coordinates, so that both directions are used.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rma::sim {

/// One direction of a cable. Numbers go from 0 to links() - 1.
using link_id = std::uint32_t;

class topology {
 public:
  enum class kind : std::uint8_t { single_switch, fat_tree, torus };

  /// Errors     Error(bad_setting): not one of the forms above; Error(bad_argument): no room for that many nodes
  [[gnu::visibility("default")]] topology(std::string_view text, int nodes);

  [[nodiscard]] kind what() const noexcept { return kind_; }
  [[nodiscard]] int nodes() const noexcept { return static_cast<int>(nodes_); }
  [[nodiscard]] std::uint32_t links() const noexcept { return links_; }
  /// The number of links of the longest route.
  [[nodiscard]] unsigned hops_max() const noexcept { return hops_max_; }
  /// The full description, with chosen values: "fat-tree:k=16,n=3".
  [[nodiscard]] std::string text() const;

  /// Writes the links from one node to another, in order, into `path` (room for hops_max()); returns their number.
  unsigned route(int from, int to, link_id* path) const noexcept;

  /// One end of a link: a node, or a router by level (0 in a torus) and number.
  struct end {
    bool is_node;
    unsigned level;
    std::uint32_t index;
    bool operator==(const end&) const = default;
  };
  [[nodiscard]] end source_of(link_id link) const noexcept;
  [[nodiscard]] end target_of(link_id link) const noexcept;
  /// "node 3 -> switch 0.1"; in a torus "router (0,1) -> router (1,1)".
  [[nodiscard]] std::string name_of(link_id link) const;
  [[nodiscard]] std::string name_of(const end& of) const;

  /// Links of one kind have neighboring numbers; groups are numbered in their order.
  [[nodiscard]] unsigned groups() const noexcept;
  [[nodiscard]] unsigned group_of(link_id link) const noexcept;
  /// "node to switch", "switch level 0 to 1", "x+".
  [[nodiscard]] std::string group_name(unsigned group) const;

 private:
  static constexpr unsigned levels_max = 24;

  void make_switch();
  void make_fat_tree(std::string_view text, std::string_view rest);
  void make_torus(std::string_view text, std::string_view rest);
  [[nodiscard]] std::uint32_t with_digit(std::uint32_t number, unsigned digit, std::uint32_t value) const noexcept;
  unsigned route_fat_tree(std::uint32_t from, std::uint32_t to, link_id* path) const noexcept;
  unsigned route_torus(std::uint32_t from, std::uint32_t to, link_id* path) const noexcept;
  [[nodiscard]] end end_of(link_id link, bool target) const noexcept;

  kind kind_ = kind::single_switch;
  std::uint32_t nodes_;
  std::uint32_t links_ = 0;
  unsigned hops_max_ = 0;
  std::uint32_t places_ = 0;  // for nodes; each level of a fat tree has as many cables
  // fat tree: k, n and the powers of k; torus: the sides and the number of dimensions
  std::uint32_t arity_ = 0;
  unsigned levels_ = 0;
  std::array<std::uint32_t, levels_max + 1> power_{};
  std::array<std::uint32_t, 3> side_{1, 1, 1};
  unsigned dimensions_ = 0;
};

}  // namespace rma::sim
