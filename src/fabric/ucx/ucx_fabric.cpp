// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regions, endpoints and keys at first use, and how connections end.
#include "fabric/ucx/ucx_fabric.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/clock.hpp"
#include "fabric/ucx/open.hpp"
#include "rma/error.hpp"

namespace rma::ucx {
namespace {

constexpr std::int64_t doubt_ns = 500'000'000;         // deaths are news by then, and so is the job's end
constexpr std::size_t keys_max = 256;                  // kept of one peer, unless they are in use
constexpr std::size_t pieces_max = 32;                 // of a gather list: so many requests of UCX
constexpr std::size_t handler_bytes_max = 8192;        // over TCP: one message and its answer, or two
constexpr std::int64_t goodbye_ns = 500'000'000;       // what does not go out in this time stays
constexpr std::size_t transfer_bytes_max = 1UL << 30;  // a request of UCX counts more, a TCP stream carries no more

std::string hex_of(const std::string& bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char c : bytes) {
    const auto b = static_cast<unsigned char>(c);
    text += digits[b >> 4];
    text += digits[b & 15];
  }
  return text;
}

int digit_of(char c) noexcept { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/// Empty if it is no such text.
std::vector<std::byte> bytes_of(std::string_view hex) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = digit_of(hex[i]);
    const int low = digit_of(hex[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::byte>(16 * high + low));
  }
  return bytes;
}

}  // namespace

ucx_fabric::ucx_fabric(int rank, int size) : network(*this, *this), rank_(rank), size_(size) {
  ucp_am_handler_param_t how{};
  how.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS | UCP_AM_HANDLER_PARAM_FIELD_CB |
                   UCP_AM_HANDLER_PARAM_FIELD_ARG;
  how.id = message_id;
  how.flags = UCP_AM_FLAG_WHOLE_MSG;
  how.cb = &ucx_fabric::on_active_message;
  how.arg = this;
  if (const ucs_status_t s = ucx_.ucp_worker_set_am_recv_handler(library_.worker(), &how); s != UCS_OK)
    throw Error(status::unreachable, std::string("UCX gives no active messages (") + ucx_.ucs_status_string(s) + ")");

  by_messages_ = library_.only_messages();
  caps_.name = "ucx";
  caps_.gather_max = pieces_max;
  caps_.scatter_max = pieces_max;
  // Without watching its peer UCX cannot be told to let go of an operation's memory when the peer is dead.
  if (library_.watches_peers()) caps_.handler_bytes_max = by_messages_ ? 0 : handler_bytes_max;
  if (by_messages_) caps_.handler_pieces_bytes_max = message_bytes;
  caps_.message_bytes_max = by_messages_ ? batched_bytes - sizeof(envelope) : message_bytes;
  caps_.transfer_bytes_max =
      by_messages_ ? batch_bytes - sizeof(envelope) - sizeof(remote_request) : transfer_bytes_max;
  caps_.messages_after_writes = by_messages_;
  caps_.write_means = fabric::write_completion::placed;
  caps_.write_with_immediate = true;
  caps_.atomics = library_.has_atomics() || by_messages_;
  caps_.pins_memory = true;  // on some transports
}

ucx_fabric::~ucx_fabric() {
  say_goodbye();
  for (auto& [peer, c] : by_peer_) drop_keys(*c);
  for (auto& [id, r] : regions_) (void)ucx_.ucp_mem_unmap(library_.context(), r.memory);
}

std::string ucx_fabric::address() const { return hex_of(library_.address()); }

void ucx_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  add("ucx_puts", puts_);
  add("ucx_gets", gets_);
  add("ucx_atomics", atomics_);
  add("ucx_messages", messages_);
  add("ucx_batches", batches_sent_);
  add("ucx_flushes", flushes_);
  add("ucx_endpoints", endpoints_);
  add("ucx_key_exchanges", key_exchanges_);
}

// ---- regions ------------------------------------------------------------------------------------------------

status ucx_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  key = {reinterpret_cast<std::uint64_t>(at), bytes, 0};
  if (bytes == 0) return status::done;
  ucp_mem_map_params_t what{};
  what.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
  what.address = at;
  what.length = bytes;
  registered made{};
  if (ucx_.ucp_mem_map(library_.context(), &what, &made.memory) != UCS_OK) return status::not_supported;
  void* packed = nullptr;
  std::size_t packed_bytes = 0;
  const ucs_status_t s = ucx_.ucp_rkey_pack(library_.context(), made.memory, &packed, &packed_bytes);
  if (s != UCS_OK || packed_bytes > message_bytes - sizeof(std::uint64_t)) {
    if (s == UCS_OK) ucx_.ucp_rkey_buffer_release(packed);
    (void)ucx_.ucp_mem_unmap(library_.context(), made.memory);
    return status::not_supported;
  }
  const auto* const first = static_cast<const std::byte*>(packed);
  made.packed.assign(first, first + packed_bytes);
  made.address = key.address;
  made.bytes = bytes;
  ucx_.ucp_rkey_buffer_release(packed);
  key.key = next_key_++;
  regions_.emplace(key.key, std::move(made));
  return status::done;
}

// Keys are never used twice, so that a peer's old one reaches nothing new.
void ucx_fabric::deregister_region(const fabric::region_key& key) noexcept {
  const auto at = regions_.find(key.key);
  if (at == regions_.end()) return;
  (void)ucx_.ucp_mem_unmap(library_.context(), at->second.memory);
  regions_.erase(at);
}

// ---- connections --------------------------------------------------------------------------------------------

connection& ucx_fabric::known(int peer) noexcept {
  auto& c = by_peer_[peer];
  if (c == nullptr) c = std::make_unique<connection>(*this, peer);
  return *c;
}

status ucx_fabric::reach(int peer, connection*& c) noexcept {
  if (last_peer_ == nullptr || last_peer_->peer != peer) [[unlikely]]
    last_peer_ = &known(peer);
  c = last_peer_;
  if (c->state != connection_state::alive) [[unlikely]]
    return status::peer_failed;
  if (c->doubt_until_ns != 0) [[unlikely]]
    return status::retry_queue_full;
  return c->endpoint != nullptr ? status::done : connect(*c);
}

// Shared memory of UCX does not notice that a peer is gone: then only the job's news ends what is under way.
status ucx_fabric::connect(connection& c) noexcept {
  std::string text;
  if (const status s = directory_->look_up(c.peer, address_key(c.peer), text); !ok(s)) return s;
  const std::vector<std::byte> theirs = bytes_of(text);
  ucp_ep_params_t how{};
  how.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  how.address = reinterpret_cast<const ucp_address_t*>(theirs.data());
  how.err_mode = library_.watches_peers() ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  how.err_handler = {&ucx_fabric::on_error, this};
  const ucs_status_t s =
      theirs.empty() ? UCS_ERR_INVALID_ADDR : ucx_.ucp_ep_create(library_.worker(), &how, &c.endpoint);
  if (s == UCS_OK) {
    ++endpoints_;
    return status::done;
  }
  c.endpoint = nullptr;
  c.state = connection_state::unreachable;
  doubt(c);
  std::fprintf(stderr,
               "rma: rank %d: UCX leads to rank %d by none of its transports (%s): see UCX_TLS and UCX_NET_DEVICES\n",
               rank_, c.peer, ucx_.ucs_status_string(s));
  return status::peer_failed;
}

// UCX has given the endpoint up.
void ucx_fabric::on_error(void* self, ucp_ep_h endpoint, ucs_status_t) noexcept {
  auto& me = *static_cast<ucx_fabric*>(self);
  for (auto& [peer, c] : me.by_peer_) {
    if (c->endpoint == endpoint) me.doubt(*c);
  }
}

// The peer may have died, ended the job or left. If the job does not say so soon, it is taken for lost.
void ucx_fabric::doubt(connection& c) noexcept {
  if (c.doubt_until_ns != 0) return;
  c.doubt_until_ns = detail::clock_ns() + doubt_ns;
  broken_.push_back(&c);
}

// Who left may have answered before: that gets its time to arrive.
bool ucx_fabric::doubt_is_over(const connection& c) const noexcept {
  const bool known =
      c.state != connection_state::alive && (c.state != connection_state::left || library_.watches_peers());
  return known || detail::clock_ns() >= c.doubt_until_ns;
}

void ucx_fabric::resolve_doubts(fabric::sink& to) noexcept {
  std::vector<int> lost;
  std::erase_if(broken_, [&](connection* c) {
    if (!doubt_is_over(*c)) return false;
    if (c->state == connection_state::alive || c->state == connection_state::unreachable) {
      c->state = connection_state::broken;
      lost.push_back(c->peer);
    }
    abandon(*c);
    return true;
  });
  for (const int peer : lost) to.on_broken(peer);
}

// Who sends something must be told when this rank leaves, when nothing can be looked up any more. Its first message has
// made UCX connect both ways: this takes that endpoint.
void ucx_fabric::answer_strangers() noexcept {
  for (connection* c : std::exchange(strangers_, {})) {
    if (c->endpoint == nullptr && c->state == connection_state::alive && c->doubt_until_ns == 0) (void)connect(*c);
  }
}

// Who leaves goes on serving until this rank has nothing under way there.
void ucx_fabric::answer_leavers() noexcept {
  std::erase_if(leavers_, [this](connection* c) {
    if (c->state != connection_state::left) return true;
    if (!c->idle()) return false;
    if (c->endpoint != nullptr || connect(*c) == status::done)
      (void)transmit(*c, static_cast<std::uint16_t>(own_kind::understood), {}, {});
    return true;
  });
}

ucs_status_ptr_t ucx_fabric::close(connection& c, std::uint32_t flags) noexcept {
  ucp_ep_h const endpoint = std::exchange(c.endpoint, nullptr);
  if (endpoint == nullptr) return nullptr;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = flags;
  return ucx_.ucp_ep_close_nbx(endpoint, &how);
}

// From any thread, which may hold locks of its own: the next poll does it, before anything else is taken.
void ucx_fabric::forget(int peer) noexcept {
  const std::lock_guard guard(deaths_lock_);
  deaths_.push_back(peer);
  has_deaths_.store(true, std::memory_order_release);
}

void ucx_fabric::take_deaths() noexcept {
  std::vector<int> news;
  {
    const std::lock_guard guard(deaths_lock_);
    news.swap(deaths_);
    has_deaths_.store(false, std::memory_order_relaxed);
  }
  for (const int peer : news) {
    connection& c = known(peer);
    c.state = connection_state::dead;
    std::erase_if(arrivals_, [peer](const arrival& a) { return a.source == peer; });
    std::erase_if(waiting_, [peer](const own_message& m) { return m.peer == peer; });
    abandon(c);
  }
}

// What is under way ends at once, whenever UCX gives it back: without watching its peer it may never do so. Then the
// endpoint stays, too: it must not be closed by force.
void ucx_fabric::abandon(connection& c) noexcept {
  for (const auto& o : operations_) {
    if (o->to == &c && o->pieces != 0) tell(*o, status::peer_failed);
  }
  end_asked(c);
  for (auto* tokens : {&c.written, &c.unresolved}) {
    for (const std::uint64_t token : *tokens) ended_.push_back({token, status::peer_failed});
    tokens->clear();
  }
  c.immediates.clear();
  if (outgoing* const batch = std::exchange(c.batch, nullptr)) on_sent(nullptr, UCS_OK, batch);
  c.unflushed = 0;
  under_way_ -= std::exchange(c.under_way, 0);
  if (!library_.watches_peers()) return;
  ucs_status_ptr_t const closing = close(c, UCP_EP_CLOSE_FLAG_FORCE);
  if (UCS_PTR_IS_PTR(closing)) ucx_.ucp_request_free(closing);
  drop_keys(c);
}

// It is the last message that a peer sends.
bool ucx_fabric::expects_goodbye(int peer) noexcept {
  const auto at = by_peer_.find(peer);
  return at != by_peer_.end() && at->second->state == connection_state::alive && at->second->doubt_until_ns == 0;
}

// Others learn that what breaks now is no failure. UCX serves what they still have under way here until they say that
// it is over; who does not call the library now is not waited for long.
void ucx_fabric::say_goodbye() noexcept {
  sink_ = nullptr;
  const std::int64_t until_ns = detail::clock_ns() + goodbye_ns;
  std::vector<connection*> told;
  for (auto& [peer, c] : by_peer_) {
    if (c->endpoint == nullptr || c->state != connection_state::alive || c->doubt_until_ns != 0 || peer == rank_)
      continue;
    (void)transmit(*c, static_cast<std::uint16_t>(own_kind::goodbye), {}, {});
    told.push_back(c.get());
  }
  progress_until(until_ns, [this, &told] {
    if (has_deaths_.load(std::memory_order_acquire)) take_deaths();
    if (!waiting_.empty()) send_waiting();
    answer_leavers();
    std::erase_if(told, [](const connection* c) {
      return c->understood || c->state != connection_state::alive || c->doubt_until_ns != 0;
    });
    return told.empty() && leavers_.empty() && under_way_ == 0;
  });
  close_all(until_ns);
}

// By force where nothing can be under way any more; without watching its peer UCX does not know how.
void ucx_fabric::close_all(std::int64_t until_ns) noexcept {
  std::vector<ucs_status_ptr_t> closing;
  for (auto& [peer, c] : by_peer_) {
    const bool whole = c->idle() && c->doubt_until_ns == 0 && c->state <= connection_state::left;
    if (!whole && !library_.watches_peers()) continue;
    ucs_status_ptr_t const request = close(*c, whole ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  progress_until(until_ns, [this, &closing] {
    std::erase_if(closing, [this](ucs_status_ptr_t request) {
      const bool over = ucx_.ucp_request_check_status(request) != UCS_INPROGRESS;
      if (over) ucx_.ucp_request_free(request);
      return over;
    });
    return closing.empty();
  });
  for (ucs_status_ptr_t request : closing) ucx_.ucp_request_free(request);
}

template <class Over>
void ucx_fabric::progress_until(std::int64_t until_ns, Over over) noexcept {
  while (!over()) {
    const std::int64_t left_ns = until_ns - detail::clock_ns();
    if (left_ns <= 0) return;
    if (progress() != 0 || ucx_.ucp_worker_arm(library_.worker()) != UCS_OK) continue;
    pollfd news{library_.event_fd(), POLLIN, 0};
    const std::int64_t nap_ms = std::min<std::int64_t>(left_ns / 1'000'000 + 1, 10);  // deaths are told otherwise
    (void)::poll(&news, 1, static_cast<int>(nap_ms));
  }
}

// ---- keys ---------------------------------------------------------------------------------------------------

void ucx_fabric::drop_keys(connection& c) noexcept {
  for (auto& [id, key] : c.keys) {
    if (key.handle != nullptr) ucx_.ucp_rkey_destroy(key.handle);
  }
  c.keys.clear();
  c.last_handle = nullptr;
}

// `retry_queue_full` until the peer has said what it is. Windows come and go: in a quiet moment their keys go, too.
status ucx_fabric::key_of(connection& c, const fabric::region_key& region, ucp_rkey_h& key) noexcept {
  if (c.last_handle != nullptr && c.last_key == region.key) [[likely]] {
    key = c.last_handle;
    return status::done;
  }
  if (c.keys.size() >= keys_max && c.under_way == 0 && !c.unplaced()) drop_keys(c);
  const auto [at, asked_now] = c.keys.try_emplace(region.key);
  if (asked_now) {
    ++key_exchanges_;
    send_own(c.peer, own_kind::ask_key, std::as_bytes(std::span(&region.key, 1)));
  }
  if (at->second.refused) return status::transfer_failed;
  key = at->second.handle;
  if (key == nullptr) return status::retry_queue_full;
  c.last_key = region.key;
  c.last_handle = key;
  return status::done;
}

void ucx_fabric::give_key(int peer, std::span<const std::byte> asked) noexcept {
  std::uint64_t id = 0;
  if (asked.size() != sizeof id) return;
  std::memcpy(&id, asked.data(), sizeof id);
  const auto at = regions_.find(id);
  send_own(peer, own_kind::give_key, asked,
           at == regions_.end() ? std::span<const std::byte>() : std::as_bytes(std::span(at->second.packed)));
}

void ucx_fabric::take_key(connection& c, std::span<const std::byte> given) noexcept {
  std::uint64_t id = 0;
  if (given.size() < sizeof id) return;
  std::memcpy(&id, given.data(), sizeof id);
  const auto at = c.keys.find(id);
  if (at == c.keys.end() || at->second.handle != nullptr || c.endpoint == nullptr) return;
  remote_key& key = at->second;
  key.refused =
      given.size() == sizeof id || ucx_.ucp_ep_rkey_unpack(c.endpoint, given.data() + sizeof id, &key.handle) != UCS_OK;
  if (key.refused) key.handle = nullptr;
}

// ---- messages of the fabric's own ---------------------------------------------------------------------------

void ucx_fabric::take_own(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  switch (kind) {
    case own_kind::goodbye:
      if (c.state != connection_state::alive) break;
      c.state = connection_state::left;
      leavers_.push_back(&c);
      // It serves for a while what is still under way there. Without watching its peer UCX never ends the rest.
      if (!c.idle() && !library_.watches_peers()) doubt(c);
      break;
    case own_kind::understood: c.understood = true; break;
    case own_kind::ask_key: give_key(c.peer, payload); break;
    case own_kind::give_key: take_key(c, payload); break;
    case own_kind::put: take_put(c, payload); break;
    case own_kind::ask_placed:
    case own_kind::ask_get:
    case own_kind::ask_atomic: take_order(c, kind, payload); break;
    case own_kind::give_get:
    case own_kind::result: take_answer(c, kind, payload); break;
    case own_kind::immediate: hand(c.peer, static_cast<std::uint16_t>(kind), payload); break;
    case own_kind::count_: break;
  }
}

void ucx_fabric::send_own(int peer, own_kind kind, std::span<const std::byte> front, std::span<const std::byte> behind,
                          departure when) noexcept {
  if (waiting_.empty() && transmit_own(peer, kind, front, behind, when) == status::done) return;
  std::vector<std::byte> bytes(front.begin(), front.end());
  bytes.insert(bytes.end(), behind.begin(), behind.end());
  waiting_.push_back({peer, kind, std::move(bytes)});
}

// Who leaves still gets answers; of a peer that is gone nothing is waited for.
status ucx_fabric::transmit_own(int peer, own_kind kind, std::span<const std::byte> front,
                                std::span<const std::byte> behind, departure when) noexcept {
  connection* c = &known(peer);
  const bool leaves = c->state == connection_state::left && c->endpoint != nullptr && c->doubt_until_ns == 0;
  if (!leaves && reach(peer, c) != status::done) return status::done;
  return transmit(*c, static_cast<std::uint16_t>(kind), front, behind, when);
}

// A message to oneself may be answered before `transmit` returns: it is taken out first.
void ucx_fabric::send_waiting() noexcept {
  while (!waiting_.empty()) {
    own_message m = std::move(waiting_.front());
    waiting_.pop_front();
    if (transmit_own(m.peer, m.kind, m.bytes, {}, departure::now) == status::done) continue;
    return waiting_.push_front(std::move(m));
  }
}

}  // namespace rma::ucx
