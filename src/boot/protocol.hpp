// SPDX-License-Identifier: Apache-2.0
/// \file
/// The boot channel carries frames of `u32 length, u8 type, body`, little-endian.
///
///   client                           server
///   hello(magic, rank, size, Nc) ->
///                                <-  challenge(Ns)                 a stranger learns a random number, no more
///   proof(HMAC(key, client...))  ->
///                                <-  welcome(HMAC(key, server...)) or refuse(reason)
///                                <-  ready                         all ranks are here
///   step                         ->                                (no reply)
///   put | get | fence | ...      ->
///                                <-  value | no_value | fence_done | fence_failed | bye   (replies, in order)
///                                <-  died | left | aborted | closing                      (news, at any time)
///
/// The handshake authenticates the connection and both its ends; later frames carry no MAC of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rma::boot {

inline constexpr std::size_t key_bytes_max = 4096;
inline constexpr std::size_t value_bytes_max = std::size_t{1} << 20;
inline constexpr std::size_t text_bytes_max = 4096;  ///< refusals and abort messages
inline constexpr std::size_t step_bytes_max = 200;
inline constexpr std::size_t stranger_frame_bytes_max = 512;  ///< before the key is proven
inline constexpr std::size_t member_frame_bytes_max = value_bytes_max + key_bytes_max + 64;
inline constexpr std::string_view hello_magic = "rma-boot-3";  ///< name and version in one

enum class message : std::uint8_t {
  hello = 1,     ///< text magic, u32 rank, u32 size, 32 raw bytes Nc
  challenge,     ///< 32 raw bytes Ns
  proof,         ///< 32 raw bytes
  accepted,      ///< 32 raw bytes
  rejected,      ///< text reason
  ready,         ///< (empty)
  ask_late,      ///< (empty); also while the sender waits
  late,          ///< text: the ranks that have not joined; if all have, those that others wait for
  step,          ///< u8 1 if it is a wait for others, text: what the rank does next in the start
  put,           ///< text key, text value
  get,           ///< u32 deaths that the caller has been told of, text key
  value,         ///< text value
  no_value,      ///< u8 1 if a death is the reason
  fence,         ///< (empty)
  fence_done,    ///< (empty)
  fence_failed,  ///< (empty)
  abort,         ///< u32 code, text message
  aborted,       ///< u32 rank, u32 code, text message
  finalize,      ///< (empty)
  bye,           ///< (empty)
  report_death,  ///< u32 rank
  died,          ///< u32 rank
  left,          ///< u32 rank
  closing,       ///< u32 rounds that the receiver's came after: the server ends in good order
};

struct frame {
  message type{};
  std::string body;
};

/// Cuts a stream of bytes into frames. Whatever arrives, it only ever says `ready`, `need_more` or `garbage`,
/// and holds no more than the bytes fed to it.
class frame_reader {
 public:
  enum class result : std::uint8_t { ready, need_more, garbage };

  explicit frame_reader(std::size_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  void feed(std::string_view bytes) { buffer_.append(bytes); }
  result next(frame& out);

  /// Raised once the other side has proven the key.
  void set_frame_bytes_max(std::size_t bytes) noexcept { frame_bytes_max_ = bytes; }

 private:
  std::string buffer_;
  std::size_t at_ = 0;
  std::size_t frame_bytes_max_;
};

/// Builds one frame: `frame_writer(message::get).u32(told).text(key).finish()`.
class frame_writer {
 public:
  explicit frame_writer(message type);
  frame_writer& u8(std::uint8_t value);
  frame_writer& u32(std::uint32_t value);
  frame_writer& text(std::string_view value);
  frame_writer& raw(std::string_view bytes);
  [[nodiscard]] std::string finish();

 private:
  std::string bytes_;
};

/// Takes a body apart. After a shortage every further read gives zero or nothing, and `complete()` is false.
class body_reader {
 public:
  explicit body_reader(std::string_view body) : rest_(body) {}
  std::uint8_t u8();
  std::uint32_t u32();
  std::string_view text();
  std::string_view raw(std::size_t bytes);
  /// All that was asked for was there, and nothing is left over.
  [[nodiscard]] bool complete() const noexcept { return enough_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool enough_ = true;
};

/// A frame without a body.
std::string bare_frame(message type);

/// At most text_bytes_max of `text`, control characters replaced: fit to be printed in one line.
std::string one_line(std::string_view text);

}  // namespace rma::boot
