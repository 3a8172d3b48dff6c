// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ways to make an update: table[place_of(x)] = table[place_of(x)] op x.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "random_access_table.hpp"

namespace random_access {

/// HPCC's rule: no more updates than these may be stored before they are sent.
inline constexpr std::size_t stored_updates_max = 1024;

/// Makes updates of a table, in one of the variants.
class Updater {
 public:
  Updater() = default;
  Updater(const Updater&) = delete;
  Updater& operator=(const Updater&) = delete;
  virtual ~Updater() = default;

  /// Makes these updates (at most stored_updates_max); all of them have been sent when it returns.
  virtual void apply(std::span<const word> randoms) = 0;
  /// All updates are in their tables when it returns.
  virtual void finish() {}
};

/// One epoch for the run and a flush for every batch; an epoch for every operation; or that, but with no lock taken.
enum class Epochs : std::uint8_t { batch, update, no_check };
inline constexpr std::string_view epoch_names[] = {"batch", "update", "no-check"};

std::unique_ptr<Updater> make_updater(Table& table, Variant variant, Epochs epochs);

/// Takes updates back, one atomic accumulate each, whatever variant made them.
std::unique_ptr<Updater> make_undo(Table& table, Variant variant);

}  // namespace random_access
