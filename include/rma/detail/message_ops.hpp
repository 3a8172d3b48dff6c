// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library functions behind rma/messages.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

#include "rma/error.hpp"
#include "rma/layout.hpp"
#include "rma/ranks.hpp"

// Declared before the push: users' code has pointers to them only, and their members are not exported.
namespace rma::detail {
struct team_core;
struct message_node;
struct unexpected_message;
}  // namespace rma::detail

#pragma GCC visibility push(default)

namespace rma {

/// Wildcards of a receive: any member as source, any tag.
inline constexpr int any_source = -1;
inline constexpr int any_tag = -1;

enum class send_kind : std::uint8_t { standard, synchronous, buffered, ready };

/// Source, tag and size of a message that has arrived.
struct Received {
  int source = no_rank;   ///< rank of the sender; no_rank if there is no message
  int tag = any_tag;      ///< tag of the message
  std::size_t bytes = 0;  ///< length of the message, even if it was too long
  /// Number of whole elements of type T in the message.
  template <class T>
  [[nodiscard]] std::size_t count() const noexcept {
    return bytes / sizeof(T);
  }

  // The arguments of the call, for the text of errors.
  std::size_t room = 0;  ///< bytes of the receive
  int call_rank = no_rank;
  int call_tag = any_tag;
};

namespace detail {

struct request_node;

template <class T>
constexpr void require_copyable() noexcept {
  static_assert(std::is_trivially_copyable_v<T>, "messages need a trivially copyable T: bytes travel");
}

struct message_buffer {
  void* at = nullptr;
  std::size_t bytes = 0;
  const Layout* layout = nullptr;
};

template <class T, std::size_t N>
message_buffer buffer_of(std::span<T, N> data) noexcept {
  require_copyable<T>();
  return {const_cast<std::remove_const_t<T>*>(data.data()), data.size_bytes(), nullptr};
}
template <class T>
message_buffer buffer_of(T* at, const Layout& layout) noexcept {
  return {const_cast<std::remove_const_t<T>*>(at), layout.bytes(), &layout};
}

/// An unexpected message that mprobe has matched.
struct held_message {
  std::shared_ptr<team_core> team{};
  unexpected_message* what = nullptr;

  held_message() noexcept = default;
  held_message(held_message&& other) noexcept : team(std::move(other.team)), what(std::exchange(other.what, nullptr)) {}
  held_message& operator=(held_message&& other) noexcept {
    std::swap(team, other.team);
    std::swap(what, other.what);
    return *this;
  }
  ~held_message();
};

/// Sends and receives contiguous data in the standard mode.
status send_plain(team_core& team, const void* at, std::size_t bytes, int to, int tag) noexcept;
status receive_plain(team_core& team, void* at, std::size_t bytes, int from, int tag, Received& what) noexcept;
status send_message(team_core& team, send_kind kind, const message_buffer& data, int to, int tag) noexcept;
status receive_message(team_core& team, const message_buffer& into, int from, int tag, Received& what) noexcept;
status exchange_messages(team_core& team, const message_buffer& data, int to, int send_tag, const message_buffer& into,
                         int from, int receive_tag, Received& what) noexcept;
/// `node` is null after an error.
status start_send(const std::shared_ptr<team_core>& team, send_kind kind, const message_buffer& data, int to, int tag,
                  message_node*& node) noexcept;
status start_receive(const std::shared_ptr<team_core>& team, const message_buffer& into, int from, int tag,
                     message_node*& node) noexcept;
/// Frees the node if the operation is complete.
status wait_message(message_node*& node, Received& what) noexcept;
status test_message(message_node*& node, Received& what) noexcept;
bool cancel_message(message_node*& node) noexcept;
void drop_message(message_node* node) noexcept;
/// Turns a started message into a request, and sets `node` to null. `what` gets source, tag and size; it may be null.
[[nodiscard]] request_node* request_of(message_node*& node, Received* what);

status probe_message(team_core& team, int from, int tag, bool wait, Received& what, held_message* take) noexcept;
status receive_held(held_message& held, const message_buffer& into, Received& what) noexcept;

status make_persistent(const std::shared_ptr<team_core>& team, send_kind kind, const message_buffer& data, int to,
                       int tag, message_node*& node) noexcept;
status make_persistent(const std::shared_ptr<team_core>& team, const message_buffer& into, int from, int tag,
                       message_node*& node) noexcept;
status start_persistent(message_node& node) noexcept;
status wait_persistent(message_node& node, Received& what) noexcept;
status test_persistent(message_node& node, Received& what) noexcept;
void end_persistent(message_node* node) noexcept;

[[noreturn]] void raise_on_team(team_core& team, const char* call, status code, const Received& what,
                                const std::source_location& where);
[[noreturn]] void raise_message(const char* call, status code, const Received& what, const std::source_location& where);

}  // namespace detail
}  // namespace rma

#pragma GCC visibility pop
