// SPDX-License-Identifier: Apache-2.0
#include "channel/message_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t block_bytes_min = 4096;

}  // namespace

message_pool::record& message_pool::take(std::uint16_t kind, std::span<const std::byte> header,
                                         std::span<const std::byte> payload) {
  const std::size_t size = header.size() + payload.size();
  const auto size_class = std::max(size_class_min, static_cast<unsigned>(std::bit_width(sizeof(record) + size - 1)));
  free_list& unused = free_of(size_class);
  if (unused.empty()) grow(size_class);
  record& r = unused.front();
  unused.pop_front();
  RMA_ASSERT(r.size_class_ == size_class && sizeof(record) + size <= std::size_t{1} << size_class);
  r.size_ = static_cast<std::uint32_t>(size);
  r.kind_ = kind;
  auto* const at = reinterpret_cast<std::byte*>(&r + 1);
  if (!header.empty()) std::memcpy(at, header.data(), header.size());
  if (!payload.empty()) std::memcpy(at + header.size(), payload.data(), payload.size());
  return r;
}

void message_pool::grow(unsigned size_class) {
  const std::size_t record_bytes = std::size_t{1} << size_class;
  const std::size_t block_bytes = std::max(record_bytes, block_bytes_min);
  std::byte* const block = blocks_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(block_bytes)).get();
  reserved_bytes_ += block_bytes;
  for (std::size_t offset = block_bytes; offset != 0; offset -= record_bytes) {
    record& r = *new (block + offset - record_bytes) record;
    r.size_class_ = static_cast<std::uint16_t>(size_class);
    give_back(r);
  }
}

}  // namespace rma::detail
