// SPDX-License-Identifier: Apache-2.0
/// \file
/// Words of this rank that other ranks may write through the network: one page, registered at the first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fabric/fabric.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {

class word_board {
 public:
  static constexpr std::size_t words_max = 512;

  explicit word_board(fabric::network& net) noexcept : net_(net) {}
  word_board(const word_board&) = delete;
  word_board& operator=(const word_board&) = delete;
  ~word_board() {
    if (registered_) net_.deregister_region(region_);
  }

  /// Takes a word, which is 0; null if all are in use, or the network cannot write to this memory.
  [[nodiscard]] word64* take() noexcept {
    if (!registered_ && !make()) return nullptr;
    if (free_.empty()) return nullptr;
    word64* const w = free_.back();
    free_.pop_back();
    w->store(0);
    return w;
  }
  void give_back(word64* w) noexcept { free_.push_back(w); }
  [[nodiscard]] const fabric::region_key& region() const noexcept { return region_; }

 private:
  struct alignas(words_max * sizeof(word64)) page {
    word64 words[words_max];
  };

  bool make() noexcept {
    if (refused_) return false;
    page_ = std::make_unique<page>();
    registered_ = net_.register_region(page_.get(), sizeof(page), region_) == status::done;
    refused_ = !registered_;
    if (refused_) return false;
    for (word64& w : page_->words) free_.push_back(&w);
    return true;
  }

  fabric::network& net_;
  std::unique_ptr<page> page_;
  std::vector<word64*> free_;
  fabric::region_key region_;
  bool registered_ = false;
  bool refused_ = false;
};

}  // namespace rma::detail
