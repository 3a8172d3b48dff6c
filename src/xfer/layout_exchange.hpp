// SPDX-License-Identifier: Apache-2.0
/// \file
/// The layouts in messages between nodes: of the operations that handlers carry out (alone, in batches, accumulates),
/// and of transfers over the bulk channel. A message names a layout by its number, see layout_cache.hpp.
///
///   origin                                              target
///   define number, bytes, at | part of description ->   keeps the layout
///   message with the number ----------------------->    runs it; if the number is unknown, holds it and all later
///                                                       messages of this origin, so that their order remains
///           <----------------------------- ask number
///   define ... ------------------------------------>    runs what was held
///
/// Only messages of kind `layout` overtake those that are held.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "xfer/layout_cache.hpp"

namespace rma::detail {

class engine;

struct layout_header {
  std::uint32_t number = 0;
  std::uint32_t bytes = 0;  ///< length of the whole description; 0: there is no such layout
  std::uint32_t at = 0;     ///< offset of the bytes that follow
  std::uint32_t asks = 0;   ///< 1: asks for the description
};
static_assert(sizeof(layout_header) == 16);

/// The caller of all functions holds the progress lock.
class layout_exchange {
 public:
  layout_exchange(context& ctx, engine& owner);

  /// The layout's number in messages to the peer. A new layout is described first. For an operation of handlers the
  /// caller updates context::peer::last_naming afterwards.
  std::uint32_t name(int peer, const Layout& layout);

  /// The layout that messages of `source` mean by this number; null if it is unknown. Valid until the next description.
  [[nodiscard]] const Layout* find(int source, std::uint32_t number) noexcept { return table_.find(source, number); }
  /// True if the number is known. Else its description is requested, and the caller has to hold the message.
  [[nodiscard]] bool knows(int source, std::uint32_t number);

 private:
  struct peer_state {
    explicit peer_state(std::size_t names) : named(names) {}

    layout_names named;                  ///< in messages to the peer
    std::vector<std::uint32_t> missing;  ///< in messages of the peer: requested, and not yet described
    std::uint32_t coming = 0;            ///< number of the partly received description
    std::vector<std::byte> received;     ///< its bytes so far
  };

  peer_state& with(int peer);
  void describe(int peer, std::uint32_t number, const Layout& layout);
  void take_description(int source, const layout_header& h, std::span<const std::byte> payload);
  void answer(int source, std::uint32_t number);
  static void on_message(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_news(void* self) noexcept;

  context& ctx_;
  engine& engine_;
  std::size_t names_max_;
  std::unordered_map<int, std::unique_ptr<peer_state>> peers_;
  layout_table table_;
  std::size_t missing_ = 0;  ///< number of missing layouts of all peers
};

}  // namespace rma::detail
