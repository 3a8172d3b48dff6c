// SPDX-License-Identifier: Apache-2.0
/// \file
/// Two-sided messages with tags between members of a team, as MPI's point-to-point calls.
///
///   world.send(std::span(row), right, 7);                        // returns when `row` may be used again
///   rma::Received what = world.recv(std::span(halo), left, 7);   // what.source, what.tag, what.count<double>()
///
///   auto in = world.irecv(std::span(halo), rma::any_source, 7);
///   auto out = world.isend(std::span(row), right, 7);
///   in.wait(), out.wait();
///
///   std::vector<rma::Request> all;                               // with requests of windows and collectives
///   all.push_back(world.irecv(std::span(halo), left, 7));
///   all.push_back(window.rput(std::span(row), right, 0));
///   all.push_back(world.ibarrier());
///   rma::wait_all(all);                                          // or wait_any, test_any, test_all
///
/// These headings hold for all calls:
///
/// Shape      a send matches one receive of its destination on the same team, with the same tag; a receive may accept
///            any source and any tag. Messages between two members match in the order of their sends, each with the
///            first posted receive that fits. They never match windows or collectives of the team
/// Completes  send, isend: when the buffer may be reused, which need not wait for the receive; ssend, issend: when a
///            receive has matched as well; bsend, ibsend: at once, from a copy that the library makes; rsend: as send.
///            recv: when the message is in its buffer. A message that no receive has matched when the team is freed, or
///            when the receiver's Runtime ends, is dropped, and its send completes
/// Memory     stores of the sender before the send are visible to the receiver after the receive
/// Units      counts of elements of T in spans, bytes in `Received`; tags are 0 ... 2^31-1
/// Errors     bad_rank; bad_argument for a negative tag that is not any_tag; message_too_long where a message is longer
///            than its receive: the receive ends, its buffer is unchanged, and the send completes. peer_failed where
///            the other rank is dead or has left, for receives from any source if a member is dead; revoked;
///            wrong_thread. transfer_failed where the other side has cancelled a transfer that had begun, because its
///            team was revoked
/// Threads    any number at the level multiple, also on one team; at the other levels as for a runtime
/// Cost       one message up to RMA_EAGER_BYTES; longer ones are announced first, and sent when a receive has matched.
///            Short ones as well if RMA_EAGER_MEMORY of the receiver is full of unexpected messages of this
///            sender
/// Source     MPI-4.1 chapter 3; Liu et al., ICS 2003; Takagi et al., EuroMPI 2013
/// See        src/p2p · tests/p2p · tests/conformance/p2p_cases.cpp
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

#include "rma/detail/message_ops.hpp"
#include "rma/error.hpp"
#include "rma/layout.hpp"
#include "rma/request.hpp"

#pragma GCC visibility push(default)

namespace rma {

class MessageRequest;
namespace detail {
status wait_any_message_nothrow(std::span<MessageRequest> requests, std::size_t& which, Received& what) noexcept;
}

/// A send or receive that has been started. One that is dropped continues, and its buffer must live until the other
/// side has done its part; cancel a receive that no send will match.
///
/// Threads    one thread at a time for each request
class MessageRequest {
  using source = std::source_location;

 public:
  MessageRequest() noexcept = default;
  /// Made by the calls that return one.
  explicit MessageRequest(detail::message_node* node) noexcept : node_(node) {}
  MessageRequest(MessageRequest&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  MessageRequest& operator=(MessageRequest&& other) noexcept {
    if (this != &other) {
      drop();
      node_ = std::exchange(other.node_, nullptr);
    }
    return *this;
  }
  ~MessageRequest() { drop(); }

  /// True until a test or wait has found it complete. Makes no progress.
  [[nodiscard]] bool pending() const noexcept { return node_ != nullptr; }

  /// Blocks until it is complete; returns the message's source, tag and size for a receive. At once if it is empty.
  Received wait(source where = source::current()) {
    Received what;
    if (const status s = wait_nothrow(what); !ok(s)) [[unlikely]]
      detail::raise_message("wait", s, what, where);
    return what;
  }
  [[nodiscard]] status wait_nothrow(Received& what) noexcept {
    return node_ == nullptr ? status::done : detail::wait_message(node_, what);
  }
  [[nodiscard]] status wait_nothrow() noexcept {
    Received what;
    return wait_nothrow(what);
  }
  /// As `wait` if it is complete, else returns nothing. Makes one step of progress.
  std::optional<Received> test(source where = source::current()) {
    Received what;
    const status s = try_test(what);
    if (s == status::not_yet) return std::nullopt;
    if (!ok(s)) [[unlikely]]
      detail::raise_message("test", s, what, where);
    return what;
  }
  [[nodiscard]] status try_test(Received& what) noexcept {
    return node_ == nullptr ? status::done : detail::test_message(node_, what);
  }
  /// Cancels a receive that no message has matched, or a send that has not left. Returns true if it did; the request
  /// is empty then; otherwise the operation completes as usual. Where the source knows the receive's buffer already
  /// (RMA_RENDEZVOUS=put), the call waits until a call of the source has answered, or for the message.
  [[nodiscard]] bool cancel() noexcept { return node_ != nullptr && detail::cancel_message(node_); }

  /// Turns this send or receive into a Request, so that one list can hold all kinds of requests: for wait_all,
  /// wait_any, test_all and test_any of rma/request.hpp. This object is empty then. `what` is written when a wait or
  /// test of the Request finds it complete; it must live until then, or until the Request is dropped. Errors name both
  /// sizes and ranks as those of this object do; the message cannot be cancelled any more.
  [[nodiscard]] Request request(Received& what) && {
    what = {};
    return Request(node_ == nullptr ? nullptr : detail::request_of(node_, &what));
  }
  /// As `request`, for callers that do not need source, tag and size.
  [[nodiscard]] operator Request() && {  // NOLINT(google-explicit-constructor): lists of requests take it so
    return Request(node_ == nullptr ? nullptr : detail::request_of(node_, nullptr));
  }

 private:
  friend status detail::wait_any_message_nothrow(std::span<MessageRequest> requests, std::size_t& which,
                                                 Received& what) noexcept;

  void drop() noexcept {
    if (node_ != nullptr) detail::drop_message(std::exchange(node_, nullptr));
  }

  detail::message_node* node_ = nullptr;
};

namespace detail {
void wait_all_messages(std::span<MessageRequest> requests, const std::source_location& where);
status wait_all_messages_nothrow(std::span<MessageRequest> requests) noexcept;
std::size_t wait_any_message(std::span<MessageRequest> requests, Received& what, const std::source_location& where);
bool test_all_messages(std::span<MessageRequest> requests, const std::source_location& where);
}  // namespace detail

/// An array, vector or span of requests.
template <class R>
concept message_requests = std::convertible_to<R, std::span<MessageRequest>>;

/// Waits for all; throws the first failure when all are complete.
template <message_requests R>
void wait_all(R&& requests, std::source_location where = std::source_location::current()) {
  detail::wait_all_messages(requests, where);
}
/// As `wait_all`; returns the first failure.
template <message_requests R>
[[nodiscard]] status wait_all_nothrow(R&& requests) noexcept {
  return detail::wait_all_messages_nothrow(requests);
}
/// Waits until one of the pending requests is complete and returns its index; `what` gets source, tag and size.
/// Returns the number of requests if none is pending.
template <message_requests R>
std::size_t wait_any(R&& requests, Received& what, std::source_location where = std::source_location::current()) {
  return detail::wait_any_message(requests, what, where);
}
template <message_requests R>
[[nodiscard]] status wait_any_nothrow(R&& requests, std::size_t& which, Received& what) noexcept {
  return detail::wait_any_message_nothrow(requests, which, what);
}
/// True if all are complete. Makes progress.
template <message_requests R>
bool test_all(R&& requests, std::source_location where = std::source_location::current()) {
  return detail::test_all_messages(requests, where);
}

/// A message that mprobe has matched, so that no other receive gets it. If it is dropped, the message is lost and its
/// send completes.
class Message {
  using source = std::source_location;

 public:
  Message() noexcept = default;
  Message(Message&& other) noexcept = default;
  Message& operator=(Message&& other) noexcept = default;

  /// False if it holds no message, or if the message has been received.
  [[nodiscard]] explicit operator bool() const noexcept { return held_.what != nullptr; }
  [[nodiscard]] const Received& info() const noexcept { return info_; }

  /// Receives this message; blocks until its data are there.
  template <class T, std::size_t N>
  Received recv(std::span<T, N> to, source where = source::current()) {
    Received what;
    if (const status s = recv_nothrow(to, what); !ok(s)) [[unlikely]]
      detail::raise_message("Message::recv", s, what, where);
    return what;
  }
  template <class T, std::size_t N>
  [[nodiscard]] status recv_nothrow(std::span<T, N> to, Received& what) noexcept {
    return detail::receive_held(held_, detail::buffer_of(to), what);
  }
  template <class T>
  Received recv(T* to, const Layout& layout, source where = source::current()) {
    Received what;
    if (const status s = recv_nothrow(to, layout, what); !ok(s)) [[unlikely]]
      detail::raise_message("Message::recv", s, what, where);
    return what;
  }
  template <class T>
  [[nodiscard]] status recv_nothrow(T* to, const Layout& layout, Received& what) noexcept {
    return detail::receive_held(held_, detail::buffer_of(to, layout), what);
  }

 private:
  template <class>
  friend class Messages;

  detail::held_message held_;
  Received info_;
};

/// A persistent send or receive, which can be started any number of times.
class PersistentMessage {
  using source = std::source_location;

 public:
  PersistentMessage() noexcept = default;
  /// Made by send_init and recv_init.
  explicit PersistentMessage(detail::message_node* node) noexcept : node_(node) {}
  PersistentMessage(PersistentMessage&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  PersistentMessage& operator=(PersistentMessage&& other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  /// Waits for an operation under way; cancels a receive that no message has matched.
  ~PersistentMessage() {
    if (node_ != nullptr) detail::end_persistent(node_);
  }

  /// Starts the operation. bad_argument if it is under way, or the object is empty.
  void start(source where = source::current()) {
    if (const status s = try_start(); !ok(s)) [[unlikely]]
      detail::raise_message("start", s, {}, where);
  }
  [[nodiscard]] status try_start() noexcept {
    return node_ == nullptr ? status::bad_argument : detail::start_persistent(*node_);
  }
  /// Blocks until it is complete; returns at once if it is not under way.
  Received wait(source where = source::current()) {
    Received what;
    if (const status s = wait_nothrow(what); !ok(s)) [[unlikely]]
      detail::raise_message("wait", s, what, where);
    return what;
  }
  [[nodiscard]] status wait_nothrow(Received& what) noexcept {
    return node_ == nullptr ? status::done : detail::wait_persistent(*node_, what);
  }
  /// As `wait` without waiting: not_yet if it is under way.
  [[nodiscard]] status try_test(Received& what) noexcept {
    return node_ == nullptr ? status::done : detail::test_persistent(*node_, what);
  }

 private:
  detail::message_node* node_ = nullptr;
};

/// The calls, as members of every team.
template <class Team>
class Messages {
  using source = std::source_location;

 public:
  // ---- sends ----------------------------------------------------------------------------------------------------

  /// Standard mode: returns when the buffer may be reused.
  template <class T, std::size_t N>
  void send(std::span<T, N> data, int to, int tag, source where = source::current()) {
    require("send", try_send(data, to, tag), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_send(std::span<T, N> data, int to, int tag) noexcept {
    detail::require_copyable<T>();
    return detail::send_plain(core(), data.data(), data.size_bytes(), to, tag);
  }
  template <class T>
  void send(const T* from, const Layout& layout, int to, int tag, source where = source::current()) {
    require("send", try_send(from, layout, to, tag), to, tag, where);
  }
  template <class T>
  [[nodiscard]] status try_send(const T* from, const Layout& layout, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::standard, detail::buffer_of(from, layout), to, tag);
  }
  /// Synchronous mode: returns when a receive has matched and the buffer may be reused.
  template <class T, std::size_t N>
  void ssend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    require("ssend", try_ssend(data, to, tag), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_ssend(std::span<T, N> data, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::synchronous, detail::buffer_of(data), to, tag);
  }
  template <class T>
  void ssend(const T* from, const Layout& layout, int to, int tag, source where = source::current()) {
    require("ssend", try_ssend(from, layout, to, tag), to, tag, where);
  }
  template <class T>
  [[nodiscard]] status try_ssend(const T* from, const Layout& layout, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::synchronous, detail::buffer_of(from, layout), to, tag);
  }
  /// Buffered mode: returns at once; data that cannot leave at once are copied to memory of the library, of any size.
  template <class T, std::size_t N>
  void bsend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    require("bsend", try_bsend(data, to, tag), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_bsend(std::span<T, N> data, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::buffered, detail::buffer_of(data), to, tag);
  }
  template <class T>
  void bsend(const T* from, const Layout& layout, int to, int tag, source where = source::current()) {
    require("bsend", try_bsend(from, layout, to, tag), to, tag, where);
  }
  template <class T>
  [[nodiscard]] status try_bsend(const T* from, const Layout& layout, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::buffered, detail::buffer_of(from, layout), to, tag);
  }
  /// Ready mode, for programs that use it: the same as send. It neither requires nor checks that a receive is posted.
  template <class T, std::size_t N>
  void rsend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    require("rsend", try_rsend(data, to, tag), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_rsend(std::span<T, N> data, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::ready, detail::buffer_of(data), to, tag);
  }
  template <class T>
  void rsend(const T* from, const Layout& layout, int to, int tag, source where = source::current()) {
    require("rsend", try_rsend(from, layout, to, tag), to, tag, where);
  }
  template <class T>
  [[nodiscard]] status try_rsend(const T* from, const Layout& layout, int to, int tag) noexcept {
    return detail::send_message(core(), send_kind::ready, detail::buffer_of(from, layout), to, tag);
  }

  /// The sends as above without waiting; the buffer must not change until the request is complete.
  template <class T, std::size_t N>
  [[nodiscard]] MessageRequest isend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    return started("isend", send_kind::standard, detail::buffer_of(data), to, tag, where);
  }
  template <class T>
  [[nodiscard]] MessageRequest isend(const T* from, const Layout& layout, int to, int tag,
                                     source where = source::current()) {
    return started("isend", send_kind::standard, detail::buffer_of(from, layout), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] MessageRequest issend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    return started("issend", send_kind::synchronous, detail::buffer_of(data), to, tag, where);
  }
  template <class T>
  [[nodiscard]] MessageRequest issend(const T* from, const Layout& layout, int to, int tag,
                                      source where = source::current()) {
    return started("issend", send_kind::synchronous, detail::buffer_of(from, layout), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] MessageRequest ibsend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    return started("ibsend", send_kind::buffered, detail::buffer_of(data), to, tag, where);
  }
  template <class T>
  [[nodiscard]] MessageRequest ibsend(const T* from, const Layout& layout, int to, int tag,
                                      source where = source::current()) {
    return started("ibsend", send_kind::buffered, detail::buffer_of(from, layout), to, tag, where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] MessageRequest irsend(std::span<T, N> data, int to, int tag, source where = source::current()) {
    return started("irsend", send_kind::ready, detail::buffer_of(data), to, tag, where);
  }
  template <class T>
  [[nodiscard]] MessageRequest irsend(const T* from, const Layout& layout, int to, int tag,
                                      source where = source::current()) {
    return started("irsend", send_kind::ready, detail::buffer_of(from, layout), to, tag, where);
  }
  /// `request` is empty after an error.
  template <class T, std::size_t N>
  [[nodiscard]] status try_isend(std::span<T, N> data, int to, int tag, MessageRequest& request,
                                 send_kind kind = send_kind::standard) noexcept {
    return begin_send(kind, detail::buffer_of(data), to, tag, request);
  }
  template <class T>
  [[nodiscard]] status try_isend(const T* from, const Layout& layout, int to, int tag, MessageRequest& request,
                                 send_kind kind = send_kind::standard) noexcept {
    return begin_send(kind, detail::buffer_of(from, layout), to, tag, request);
  }

  // ---- receives -------------------------------------------------------------------------------------------------

  /// Receives a message from `from` (or any_source) with `tag` (or any_tag), of at most data.size() elements.
  template <class T, std::size_t N>
  Received recv(std::span<T, N> data, int from, int tag, source where = source::current()) {
    Received what;
    if (const status s = recv_nothrow(data, from, tag, what); !ok(s)) [[unlikely]]
      raise("recv", s, from, tag, data.size_bytes(), what, where);
    return what;
  }
  template <class T, std::size_t N>
  [[nodiscard]] status recv_nothrow(std::span<T, N> data, int from, int tag, Received& what) noexcept {
    detail::require_copyable<T>();
    return detail::receive_plain(core(), data.data(), data.size_bytes(), from, tag, what);
  }
  template <class T>
  Received recv(T* to, const Layout& layout, int from, int tag, source where = source::current()) {
    Received what;
    if (const status s = recv_nothrow(to, layout, from, tag, what); !ok(s)) [[unlikely]]
      raise("recv", s, from, tag, layout.bytes(), what, where);
    return what;
  }
  template <class T>
  [[nodiscard]] status recv_nothrow(T* to, const Layout& layout, int from, int tag, Received& what) noexcept {
    return detail::receive_message(core(), detail::buffer_of(to, layout), from, tag, what);
  }
  template <class T, std::size_t N>
  [[nodiscard]] MessageRequest irecv(std::span<T, N> data, int from, int tag, source where = source::current()) {
    MessageRequest request;
    require("irecv", try_irecv(data, from, tag, request), from, tag, where);
    return request;
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_irecv(std::span<T, N> data, int from, int tag, MessageRequest& request) noexcept {
    return begin_receive(detail::buffer_of(data), from, tag, request);
  }
  template <class T>
  [[nodiscard]] MessageRequest irecv(T* to, const Layout& layout, int from, int tag, source where = source::current()) {
    MessageRequest request;
    require("irecv", try_irecv(to, layout, from, tag, request), from, tag, where);
    return request;
  }
  template <class T>
  [[nodiscard]] status try_irecv(T* to, const Layout& layout, int from, int tag, MessageRequest& request) noexcept {
    return begin_receive(detail::buffer_of(to, layout), from, tag, request);
  }

  /// Sends and receives at the same time, so that two ranks can exchange messages without a deadlock.
  template <class T, std::size_t N, class U, std::size_t M>
  Received sendrecv(std::span<T, N> data, int to, int send_tag, std::span<U, M> into, int from, int receive_tag,
                    source where = source::current()) {
    Received what;
    const status s = try_sendrecv(data, to, send_tag, into, from, receive_tag, what);
    if (!ok(s)) [[unlikely]]
      raise("sendrecv", s, from, receive_tag, into.size_bytes(), what, where);
    return what;
  }
  template <class T, std::size_t N, class U, std::size_t M>
  [[nodiscard]] status try_sendrecv(std::span<T, N> data, int to, int send_tag, std::span<U, M> into, int from,
                                    int receive_tag, Received& what) noexcept {
    return detail::exchange_messages(core(), detail::buffer_of(data), to, send_tag, detail::buffer_of(into), from,
                                     receive_tag, what);
  }
  /// Sends and receives at the same time; a side that is contiguous has a Layout::contiguous.
  template <class T, class U>
  Received sendrecv(const T* data, const Layout& layout, int to, int send_tag, U* into, const Layout& into_layout,
                    int from, int receive_tag, source where = source::current()) {
    Received what;
    const status s = try_sendrecv(data, layout, to, send_tag, into, into_layout, from, receive_tag, what);
    if (!ok(s)) [[unlikely]]
      raise("sendrecv", s, from, receive_tag, into_layout.bytes(), what, where);
    return what;
  }
  template <class T, class U>
  [[nodiscard]] status try_sendrecv(const T* data, const Layout& layout, int to, int send_tag, U* into,
                                    const Layout& into_layout, int from, int receive_tag, Received& what) noexcept {
    return detail::exchange_messages(core(), detail::buffer_of(data, layout), to, send_tag,
                                     detail::buffer_of(into, into_layout), from, receive_tag, what);
  }

  // ---- probing --------------------------------------------------------------------------------------------------

  /// Blocks until there is a message that such a receive would match, and returns its source, tag and size. The message
  /// is not received; with several threads another one may receive it first: see mprobe.
  Received probe(int from, int tag, source where = source::current()) {
    Received what;
    require("probe", probe_nothrow(from, tag, what), from, tag, where);
    return what;
  }
  [[nodiscard]] status probe_nothrow(int from, int tag, Received& what) noexcept {
    return detail::probe_message(core(), from, tag, true, what, nullptr);
  }
  /// As `probe` without waiting: nothing if there is no such message. Makes one step of progress.
  std::optional<Received> iprobe(int from, int tag, source where = source::current()) {
    Received what;
    const status s = try_iprobe(from, tag, what);
    if (s == status::not_yet) return std::nullopt;
    require("iprobe", s, from, tag, where);
    return what;
  }
  [[nodiscard]] status try_iprobe(int from, int tag, Received& what) noexcept {
    return detail::probe_message(core(), from, tag, false, what, nullptr);
  }
  /// As `probe`, and matches the message, so that no other receive gets it.
  [[nodiscard]] Message mprobe(int from, int tag, source where = source::current()) {
    Message message;
    require("mprobe", mprobe_nothrow(from, tag, message), from, tag, where);
    return message;
  }
  [[nodiscard]] status mprobe_nothrow(int from, int tag, Message& message) noexcept {
    message = Message();
    return detail::probe_message(core(), from, tag, true, message.info_, &message.held_);
  }
  /// As `mprobe` without waiting: an empty Message if there is none.
  [[nodiscard]] Message improbe(int from, int tag, source where = source::current()) {
    Message message;
    const status s = try_improbe(from, tag, message);
    if (s != status::not_yet) require("improbe", s, from, tag, where);
    return message;
  }
  [[nodiscard]] status try_improbe(int from, int tag, Message& message) noexcept {
    message = Message();
    return detail::probe_message(core(), from, tag, false, message.info_, &message.held_);
  }

  // ---- persistent operations ------------------------------------------------------------------------------------

  /// Makes a persistent send; a layout may be destroyed afterwards.
  template <class T, std::size_t N>
  [[nodiscard]] PersistentMessage send_init(std::span<T, N> data, int to, int tag, send_kind kind = send_kind::standard,
                                            source where = source::current()) {
    return persistent_send(kind, detail::buffer_of(data), to, tag, where);
  }
  template <class T>
  [[nodiscard]] PersistentMessage send_init(const T* from, const Layout& layout, int to, int tag,
                                            send_kind kind = send_kind::standard, source where = source::current()) {
    return persistent_send(kind, detail::buffer_of(from, layout), to, tag, where);
  }
  /// Makes a persistent receive; a layout may be destroyed afterwards.
  template <class T, std::size_t N>
  [[nodiscard]] PersistentMessage recv_init(std::span<T, N> data, int from, int tag, source where = source::current()) {
    return persistent_receive(detail::buffer_of(data), from, tag, where);
  }
  template <class T>
  [[nodiscard]] PersistentMessage recv_init(T* to, const Layout& layout, int from, int tag,
                                            source where = source::current()) {
    return persistent_receive(detail::buffer_of(to, layout), from, tag, where);
  }

 private:
  friend Team;
  Messages() noexcept = default;
  [[nodiscard]] detail::team_core& core() noexcept { return static_cast<Team*>(this)->core(); }
  [[nodiscard]] const std::shared_ptr<detail::team_core>& shared() noexcept {
    return static_cast<Team*>(this)->shared_core();
  }
  [[noreturn]] void raise(const char* call, status s, int peer, int tag, std::size_t room, Received what,
                          const source& where) {
    what.room = room;
    what.call_rank = peer;
    what.call_tag = tag;
    detail::raise_on_team(core(), call, s, what, where);
  }
  void require(const char* call, status s, int peer, int tag, const source& where) {
    if (!ok(s)) [[unlikely]]
      raise(call, s, peer, tag, 0, {}, where);
  }
  status begin_send(send_kind kind, const detail::message_buffer& buffer, int to, int tag,
                    MessageRequest& request) noexcept {
    detail::message_node* node = nullptr;
    const status s = detail::start_send(shared(), kind, buffer, to, tag, node);
    request = MessageRequest(node);
    return s;
  }
  status begin_receive(const detail::message_buffer& buffer, int from, int tag, MessageRequest& request) noexcept {
    detail::message_node* node = nullptr;
    const status s = detail::start_receive(shared(), buffer, from, tag, node);
    request = MessageRequest(node);
    return s;
  }
  MessageRequest started(const char* call, send_kind kind, const detail::message_buffer& buffer, int to, int tag,
                         const source& where) {
    MessageRequest request;
    require(call, begin_send(kind, buffer, to, tag, request), to, tag, where);
    return request;
  }
  PersistentMessage persistent_send(send_kind kind, const detail::message_buffer& buffer, int to, int tag,
                                    const source& where) {
    detail::message_node* node = nullptr;
    require("send_init", detail::make_persistent(shared(), kind, buffer, to, tag, node), to, tag, where);
    return PersistentMessage(node);
  }
  PersistentMessage persistent_receive(const detail::message_buffer& buffer, int from, int tag, const source& where) {
    detail::message_node* node = nullptr;
    require("recv_init", detail::make_persistent(shared(), buffer, from, tag, node), from, tag, where);
    return PersistentMessage(node);
  }
};

}  // namespace rma

#pragma GCC visibility pop
