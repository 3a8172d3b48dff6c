// SPDX-License-Identifier: Apache-2.0
/// \file
/// Regions, endpoints and keys at first use, and the end of connections.
#include "fabric/ucx/ucx_fabric.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "core/clock.hpp"
#include "fabric/ucx/open.hpp"
#include "rma/error.hpp"

namespace rma::ucx {
namespace {

constexpr std::size_t keys_max = 256;                  // cached keys of one peer, besides those in use
constexpr std::size_t pieces_max = 32;                 // limit of a gather list: each is a request of UCX
constexpr std::size_t handler_bytes_max = 8192;        // over TCP: a message and its reply, or two
constexpr std::int64_t goodbye_ns = 500'000'000;       // messages not sent in this time are dropped
constexpr std::size_t transfer_bytes_max = 1UL << 30;  // UCX itself allows more, a TCP stream does not

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

/// Returns no bytes if the text is malformed.
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

ucx_fabric::ucx_fabric(int rank, int size) : messaged_fabric(rank, size) {
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
  watches_peers_ = library_.watches_peers();
  caps_.name = "ucx";
  caps_.gather_max = pieces_max;
  caps_.scatter_max = pieces_max;
  // If UCX does not watch its peers, it cannot be made to release an operation's memory when the peer is dead.
  if (library_.watches_peers()) caps_.handler_bytes_max = by_messages_ ? 0 : handler_bytes_max;
  if (by_messages_) caps_.handler_pieces_bytes_max = handler_message_bytes;
  caps_.message_bytes_max = by_messages_ ? messaged::message_bytes - sizeof(envelope) : handler_message_bytes;
  caps_.transfer_bytes_max =
      by_messages_ ? batch_bytes - sizeof(envelope) - sizeof(messaged::question) : transfer_bytes_max;
  caps_.messages_after_writes = by_messages_;
  caps_.write_means = fabric::write_completion::placed;
  caps_.write_with_immediate = true;
  caps_.atomics = library_.has_atomics() || by_messages_;
  caps_.pins_memory = true;  // on some transports
}

ucx_fabric::~ucx_fabric() {
  const std::int64_t until_ns = detail::clock_ns() + goodbye_ns;
  say_goodbye(until_ns);
  close_all(until_ns);
  for (auto& [rank, p] : by_rank_) drop_keys(connection_of(*p));
  for (auto& [id, r] : registered_) (void)ucx_.ucp_mem_unmap(library_.context(), r.memory);
}

std::string ucx_fabric::address() const { return hex_of(library_.address()); }

void ucx_fabric::counts(const std::function<void(std::string_view, std::uint64_t)>& add) const {
  messaged_fabric::counts(add);
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
  if (s != UCS_OK || packed_bytes > handler_message_bytes - sizeof(std::uint64_t)) {
    if (s == UCS_OK) ucx_.ucp_rkey_buffer_release(packed);
    (void)ucx_.ucp_mem_unmap(library_.context(), made.memory);
    return status::not_supported;
  }
  const auto* const first = static_cast<const std::byte*>(packed);
  made.packed.assign(first, first + packed_bytes);
  ucx_.ucp_rkey_buffer_release(packed);
  (void)messaged_fabric::register_region(at, bytes, key);
  registered_.emplace(key.key, std::move(made));
  return status::done;
}

void ucx_fabric::deregister_region(const fabric::region_key& key) noexcept {
  const auto at = registered_.find(key.key);
  if (at == registered_.end()) return;
  (void)ucx_.ucp_mem_unmap(library_.context(), at->second.memory);
  registered_.erase(at);
  messaged_fabric::deregister_region(key);
}

// ---- connections --------------------------------------------------------------------------------------------

// UCX's shared memory does not detect the end of a peer: then only a report of the job ends outstanding operations.
status ucx_fabric::connect(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  std::string text;
  if (const status s = directory_->look_up(c.rank, address_key(c.rank), text); !ok(s)) return s;
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
    c.begun = true;
    ++endpoints_;
    return status::done;
  }
  c.endpoint = nullptr;
  suspect(c, 0);
  std::fprintf(stderr,
               "rma: rank %d: UCX leads to rank %d by none of its transports (%s): see UCX_TLS and UCX_NET_DEVICES\n",
               rank_, c.rank, ucx_.ucs_status_string(s));
  return status::peer_failed;
}

// Called by UCX when an endpoint has failed.
void ucx_fabric::on_error(void* self, ucp_ep_h endpoint, ucs_status_t) noexcept {
  auto& me = *static_cast<ucx_fabric*>(self);
  RMA_ASSERT(endpoint != nullptr);
  for (auto& [rank, p] : me.by_rank_) {
    if (connection_of(*p).endpoint == endpoint) me.suspect(*p);
  }
}

// A peer that is leaving still gets replies; a peer that has gone gets none.
bool ucx_fabric::can_answer(messaged::peer& p) noexcept {
  if (p.state > messaged::connection_state::left || p.suspected_until_ns != 0) return false;
  return connection_of(p).endpoint != nullptr || connect(p) == status::done;
}

// A peer that sends messages must get a goodbye when this rank leaves, and then its address cannot be looked up any
// more. Its message has made UCX connect in both directions: this call adopts that endpoint.
void ucx_fabric::answer_strangers() noexcept {
  for (connection* c : std::exchange(strangers_, {})) {
    if (c->endpoint == nullptr && c->state == messaged::connection_state::open && c->suspected_until_ns == 0)
      (void)connect(*c);
  }
}

ucs_status_ptr_t ucx_fabric::close(connection& c, std::uint32_t flags) noexcept {
  ucp_ep_h const endpoint = std::exchange(c.endpoint, nullptr);
  if (endpoint == nullptr) return nullptr;
  c.begun = false;
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = flags;
  return ucx_.ucp_ep_close_nbx(endpoint, &how);
}

// Outstanding operations end at once, and not when UCX completes them: if it does not watch its peers it may never do
// so. Then the endpoint is kept as well: a forced close is not allowed.
void ucx_fabric::drop(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  for (const auto& o : operations_) {
    if (o->to == &c && o->pieces != 0) tell(*o, status::peer_failed);
  }
  for (const std::uint64_t token : std::exchange(c.unresolved, {})) end(token, status::peer_failed);
  c.immediates.clear();
  c.batched = 0;
  if (outgoing* const batch = std::exchange(c.batch, nullptr)) on_sent(nullptr, UCS_OK, batch);
  under_way_ -= std::exchange(c.under_way, 0);
  if (!watches_peers_) return;
  ucs_status_ptr_t const closing = close(c, UCP_EP_CLOSE_FLAG_FORCE);
  if (UCS_PTR_IS_PTR(closing)) ucx_.ucp_request_free(closing);
  drop_keys(c);
}

// Closes endpoints; those of failed peers by force, which UCX supports only if it watches its peers.
void ucx_fabric::close_all(std::int64_t until_ns) noexcept {
  std::vector<ucs_status_ptr_t> closing;
  for (auto& [rank, p] : by_rank_) {
    const bool whole = p->idle() && p->suspected_until_ns == 0 && p->state <= messaged::connection_state::left;
    if (!whole && !watches_peers_) continue;
    ucs_status_ptr_t const request = close(connection_of(*p), whole ? 0 : UCP_EP_CLOSE_FLAG_FORCE);
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

bool ucx_fabric::progress() noexcept {
  return progress_worker() != 0 || ucx_.ucp_worker_arm(library_.worker()) != UCS_OK;
}

// ---- keys ---------------------------------------------------------------------------------------------------

void ucx_fabric::drop_keys(connection& c) noexcept {
  for (auto& [id, key] : c.keys) {
    if (key.handle != nullptr) ucx_.ucp_rkey_destroy(key.handle);
  }
  c.keys.clear();
  c.last_handle = nullptr;
}

// Returns `retry_queue_full` until the peer has sent the key. Keys are dropped when there are too many and none is in
// use, since windows are freed.
status ucx_fabric::key_of(connection& c, const fabric::region_key& region, ucp_rkey_h& key) noexcept {
  if (c.last_handle != nullptr && c.last_key == region.key) [[likely]] {
    key = c.last_handle;
    return status::done;
  }
  if (c.keys.size() >= keys_max && c.under_way == 0 && !c.unplaced()) drop_keys(c);
  const auto [at, asked_now] = c.keys.try_emplace(region.key);
  if (asked_now) {
    ++key_exchanges_;
    transmit(c, static_cast<std::uint16_t>(key_kind::request), fabric::bytes_of(region.key), {}, departure::now);
  }
  if (at->second.refused) return status::transfer_failed;
  key = at->second.handle;
  if (key == nullptr) return status::retry_queue_full;
  c.last_key = region.key;
  c.last_handle = key;
  return status::done;
}

void ucx_fabric::give_key(connection& c, std::span<const std::byte> asked) noexcept {
  std::uint64_t id = 0;
  if (asked.size() != sizeof id) return;
  std::memcpy(&id, asked.data(), sizeof id);
  const auto at = registered_.find(id);
  if (!can_answer(c)) return;
  transmit(c, static_cast<std::uint16_t>(key_kind::give), asked,
           at == registered_.end() ? std::span<const std::byte>() : std::as_bytes(std::span(at->second.packed)),
           departure::now);
}

void ucx_fabric::take_key(connection& c, std::span<const std::byte> given) noexcept {
  std::uint64_t id = 0;
  if (given.size() < sizeof id) return;
  std::memcpy(&id, given.data(), sizeof id);
  const auto at = c.keys.find(id);
  if (at == c.keys.end() || at->second.handle != nullptr || c.endpoint == nullptr) return;
  remote_key& key = at->second;
  RMA_ASSERT(key.handle == nullptr && c.endpoint != nullptr);
  key.refused =
      given.size() == sizeof id || ucx_.ucp_ep_rkey_unpack(c.endpoint, given.data() + sizeof id, &key.handle) != UCS_OK;
  if (key.refused) key.handle = nullptr;
  RMA_ASSERT(key.refused == (key.handle == nullptr));
}

void ucx_fabric::take_line_message(messaged::peer& p, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  if (kind == static_cast<std::uint16_t>(key_kind::request)) give_key(connection_of(p), payload);
  if (kind == static_cast<std::uint16_t>(key_kind::give)) take_key(connection_of(p), payload);
}

}  // namespace rma::ucx
