// SPDX-License-Identifier: Apache-2.0
/// \file
/// Encodes layouts as bytes, to be sent to another rank.
///
/// Form: version 1, then numbers in LEB128 (signed ones zigzag): levels, offset, extent_lower, extent, for each level
/// from the outermost either 0, count, stride or 1, entries, step and for each entry (offset less the one before,
/// copies), at the end the bytes of the innermost block. Where the innermost level's entries are the blocks themselves,
/// they are sent as copies of a block of one byte.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "rma/error.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

/// Returns the encoded layout.
std::vector<std::byte> encode(const Layout& layout);

/// Writes the encoding to `out` and returns its length; if that is more than `out` has, its contents are unspecified.
std::size_t encode(const Layout& layout, std::span<std::byte> out) noexcept;

/// Decodes `bytes`, which may come from any source. `outcome` is done, bad_argument (malformed), bad_size (bounds
/// overflow) or out_of_memory; unless done, the layout is empty. The memory needed is a small multiple of the input.
/// The caller must check the layout's bounds: lower(), upper(), bytes().
Layout decode(std::span<const std::byte> bytes, status& outcome) noexcept;

}  // namespace rma::detail
