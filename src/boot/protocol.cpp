// SPDX-License-Identifier: Apache-2.0
#include "boot/protocol.hpp"

#include <algorithm>

namespace rma::boot {

namespace {

constexpr std::size_t header_bytes = 4;

std::uint32_t load_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return value;
}

void store_u32(char* at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) at[i] = static_cast<char>((value >> (8 * i)) & 0xffu);
}

constexpr bool known(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(message::hello) && type <= static_cast<std::uint8_t>(message::closing);
}

}  // namespace

frame_reader::result frame_reader::next(frame& out) {
  const std::string_view rest = std::string_view(buffer_).substr(at_);
  if (rest.size() < header_bytes) return result::need_more;
  const std::size_t length = load_u32(rest);
  // Judged before the frame is here: a huge length must not make anyone wait for it.
  if (length == 0 || length > frame_bytes_max_) return result::garbage;
  if (rest.size() > header_bytes && !known(static_cast<std::uint8_t>(rest[header_bytes]))) return result::garbage;
  if (rest.size() < header_bytes + length) return result::need_more;
  out.type = static_cast<message>(rest[header_bytes]);
  out.body.assign(rest.substr(header_bytes + 1, length - 1));
  at_ += header_bytes + length;
  if (at_ == buffer_.size() || at_ > member_frame_bytes_max) {  // rarely, so that many small frames cost O(bytes)
    buffer_.erase(0, at_);
    at_ = 0;
  }
  return result::ready;
}

frame_writer::frame_writer(message type) : bytes_(header_bytes, '\0') { bytes_.push_back(static_cast<char>(type)); }

frame_writer& frame_writer::u8(std::uint8_t value) {
  bytes_.push_back(static_cast<char>(value));
  return *this;
}

frame_writer& frame_writer::u32(std::uint32_t value) {
  char raw_bytes[4];
  store_u32(raw_bytes, value);
  bytes_.append(raw_bytes, sizeof raw_bytes);
  return *this;
}

frame_writer& frame_writer::text(std::string_view value) {
  return u32(static_cast<std::uint32_t>(value.size())).raw(value);
}

frame_writer& frame_writer::raw(std::string_view bytes) {
  bytes_.append(bytes);
  return *this;
}

std::string frame_writer::finish() {
  store_u32(bytes_.data(), static_cast<std::uint32_t>(bytes_.size() - header_bytes));
  return std::move(bytes_);
}

std::string_view body_reader::raw(std::size_t bytes) {
  if (!enough_ || rest_.size() < bytes) {
    enough_ = false;
    return {};
  }
  const std::string_view taken = rest_.substr(0, bytes);
  rest_.remove_prefix(bytes);
  return taken;
}

std::uint8_t body_reader::u8() {
  const std::string_view taken = raw(1);
  return taken.empty() ? std::uint8_t{0} : static_cast<std::uint8_t>(taken[0]);
}

std::uint32_t body_reader::u32() {
  const std::string_view taken = raw(4);
  return taken.empty() ? 0 : load_u32(taken);
}

std::string_view body_reader::text() {
  const std::uint32_t bytes = u32();
  return raw(bytes);
}

std::string bare_frame(message type) { return frame_writer(type).finish(); }

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, text_bytes_max));
  std::replace_if(
      line.begin(), line.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return line;
}

}  // namespace rma::boot
