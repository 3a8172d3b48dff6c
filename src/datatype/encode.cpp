// SPDX-License-Identifier: Apache-2.0
#include "datatype/encode.hpp"

#include <cstdint>
#include <new>
#include <utility>

#include "core/assert.hpp"
#include "datatype/layout_node.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t version = 1;
constexpr std::uint64_t tag_strided = 0;
constexpr std::uint64_t tag_listed = 1;

class writer {
 public:
  explicit writer(std::span<std::byte> out) noexcept : out_(out) {}

  void put(std::uint64_t value) noexcept {
    do {
      const std::uint64_t more = value > 0x7f ? 0x80 : 0;
      if (size_ < out_.size()) out_[size_] = static_cast<std::byte>((value & 0x7f) | more);
      ++size_;
      value >>= 7;
    } while (value != 0);
  }
  void put_signed(std::ptrdiff_t value) noexcept {
    const auto bits = static_cast<std::uint64_t>(value);
    put((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::span<std::byte> out_;
  std::size_t size_ = 0;
};

class reader {
 public:
  explicit reader(std::span<const std::byte> in) noexcept : in_(in) {}

  std::uint64_t get() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == in_.size()) break;
      const auto byte = static_cast<std::uint64_t>(in_[at_++]);
      const std::uint64_t digit = byte & 0x7f;
      if (shift == 63 && digit > 1) break;
      value |= digit << shift;
      if ((byte & 0x80) == 0) return value;
    }
    failed_ = true;
    return 0;
  }
  std::ptrdiff_t get_signed() noexcept {
    const std::uint64_t bits = get();
    return static_cast<std::ptrdiff_t>((bits >> 1) ^ (~(bits & 1) + 1));
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::size_t left() const noexcept { return in_.size() - at_; }

 private:
  std::span<const std::byte> in_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

void write_level(writer& out, const layout_level& level) noexcept {
  if (level.list == nullptr) {
    out.put(tag_strided);
    out.put(level.count);
    out.put_signed(level.stride);
    return;
  }
  const entry_list& list = *level.list;
  RMA_ASSERT(list.size() > 1 && list.back().first == level.count);
  out.put(tag_listed);
  out.put(list.size() - 1);
  out.put_signed(level.stride);
  std::ptrdiff_t before = 0;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    const auto gap = static_cast<std::uint64_t>(list[i].offset) - static_cast<std::uint64_t>(before);
    out.put_signed(static_cast<std::ptrdiff_t>(gap));  // wraps, and the sum in the decoder wraps back
    out.put(list[i + 1].first - list[i].first);
    before = list[i].offset;
  }
}

struct parsed_level {
  std::size_t count = 0;
  std::ptrdiff_t stride = 0;
  bool listed = false;
  std::vector<list_entry> entries;
};

status read_level(reader& in, parsed_level& level) {
  const std::uint64_t tag = in.get();
  if (in.failed() || tag > tag_listed) return status::bad_argument;
  level.listed = tag == tag_listed;
  level.count = in.get();
  level.stride = in.get_signed();
  if (!level.listed) return in.failed() ? status::bad_argument : status::done;
  if (in.failed() || level.count > in.left() / 2) return status::bad_argument;  // each entry takes 2 bytes or more
  level.entries.reserve(level.count);
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < level.count; ++i) {
    offset += static_cast<std::uint64_t>(in.get_signed());
    level.entries.push_back({static_cast<std::ptrdiff_t>(offset), in.get()});
  }
  return in.failed() ? status::bad_argument : status::done;
}

status read_layout(reader& in, Layout& layout) {
  using make = layout_internals;
  if (in.get() != version) return status::bad_argument;
  const std::size_t depth = in.get();
  const std::ptrdiff_t offset = in.get_signed();
  const std::ptrdiff_t extent_lower = in.get_signed();
  const std::size_t extent = in.get();
  if (in.failed() || depth > layout_levels_max || extent > static_cast<std::size_t>(PTRDIFF_MAX)) {
    return status::bad_argument;
  }
  std::vector<parsed_level> levels(depth);
  RMA_ASSERT(levels.size() <= layout_levels_max);
  for (parsed_level& level : levels) {
    const status s = read_level(in, level);
    if (s != status::done) return s;
  }
  const std::size_t block = in.get();
  if (in.failed() || in.left() != 0) return status::bad_argument;
  Layout made;
  status s = make::make_block(made, block);
  for (std::size_t k = depth; k-- > 0 && s == status::done;) {
    parsed_level& level = levels[k];
    s = level.listed ? make::set_entries(made, std::move(level.entries), level.stride)
                     : make::repeat(made, level.count, level.stride);
  }
  if (s == status::done) s = make::shift(made, offset);
  if (s != status::done) return s;
  make::set_extent(made, extent_lower, extent);
  layout = std::move(made);
  return status::done;
}

}  // namespace

std::size_t encode(const Layout& layout, std::span<std::byte> out) noexcept {
  using in = layout_internals;
  writer to(out);
  const layout_node* const node = in::node(layout);
  const bool is_vector = node == nullptr && layout.blocks() > 1;
  to.put(version);
  to.put(node != nullptr ? node->levels.size() : is_vector ? 1 : 0);
  to.put_signed(in::offset(layout));
  to.put_signed(layout.extent_lower());
  to.put(layout.extent());
  if (is_vector) write_level(to, {layout.blocks(), in::stride(layout), in::block(layout), nullptr});
  if (node != nullptr) {
    for (const layout_level& level : node->levels) write_level(to, level);
  }
  const bool entries_are_blocks = node != nullptr && node->block == 0;
  to.put(entries_are_blocks ? 1 : node != nullptr ? node->block : in::block(layout));
  return to.size();
}

std::vector<std::byte> encode(const Layout& layout) {
  std::vector<std::byte> bytes(encode(layout, {}));
  [[maybe_unused]] const std::size_t written = encode(layout, bytes);
  RMA_ASSERT(written == bytes.size());
  return bytes;
}

Layout decode(std::span<const std::byte> bytes, status& outcome) noexcept {
  Layout layout;
  try {
    reader in(bytes);
    outcome = read_layout(in, layout);
  } catch (const std::bad_alloc&) {
    outcome = status::out_of_memory;
  }
  RMA_ASSERT(outcome == status::done || layout.bytes() == 0);
  return layout;
}

}  // namespace rma::detail
