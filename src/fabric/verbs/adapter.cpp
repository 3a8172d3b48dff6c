// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/adapter.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "rma/error.hpp"

namespace rma::verbs {
namespace {

struct wish {
  std::string name;
  int port = 0;  ///< 0: any
  int gid = -1;  ///< -1: choose
};

[[noreturn]] void reject(const std::string& text) {
  throw Error(status::bad_setting,
              fmt::format("RMA_DEVICE={} is not a device; valid: name, name:port or name:port:gid index", text));
}

wish parse(const std::string& text) {
  wish w;
  std::string_view rest(text);
  const auto next = [&]() {
    const auto cut = rest.find(':');
    const std::string_view word = rest.substr(0, cut);
    rest = cut == std::string_view::npos ? std::string_view() : rest.substr(cut + 1);
    return word;
  };
  const auto number = [&](int& n, int least) {
    if (rest.empty()) return;
    const std::string_view word = next();
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), n);
    if (error != std::errc{} || end != word.data() + word.size() || n < least) reject(text);
  };
  w.name = next();
  number(w.port, 1);
  number(w.gid, 0);
  if (!rest.empty()) reject(text);
  return w;
}

bool is_ipv4(const ibv_gid& gid) noexcept {
  static constexpr unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::memcmp(gid.raw, mapped, sizeof mapped) == 0;
}

std::string text_of(const ibv_gid& gid) {
  char text[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(AF_INET6, gid.raw, text, sizeof text);
  return text;
}

void add_reason(std::string& reasons, const std::string& one) {
  if (!reasons.empty()) reasons += "; ";
  reasons += one;
}

}  // namespace

void refuse_without(const char* what) {
  throw Error(status::unreachable, fmt::format("the RDMA device gives no {} ({})", what, std::strerror(errno)));
}

adapter::adapter(const std::string& wanted) {
  const wish w = parse(wanted);
  (void)::ibv_fork_init();  // a child of the program must not share pages that the device writes to; a late call is
                            // harmless
  int count = 0;
  ibv_device** const list = ::ibv_get_device_list(&count);
  std::string why_not;
  bool found = false;
  for (int i = 0; list != nullptr && i < count && !found; ++i) {
    if (!w.name.empty() && w.name != ::ibv_get_device_name(list[i])) continue;
    found = open(list[i], w.port, w.gid, why_not);
  }
  if (list != nullptr) ::ibv_free_device_list(list);
  if (found) return;
  if (why_not.empty() && w.name.empty()) why_not = "this machine has no RDMA device (see ibv_devices)";
  if (why_not.empty()) why_not = fmt::format("RMA_DEVICE={}: there is no such device (see ibv_devices)", wanted);
  throw Error(status::unreachable, why_not);
}

adapter::~adapter() {
  if (domain_ != nullptr) ::ibv_dealloc_pd(domain_);
  if (device_ != nullptr) ::ibv_close_device(device_);
}

bool adapter::open(ibv_device* candidate, int port, int gid_index, std::string& why_not) {
  name_ = ::ibv_get_device_name(candidate);
  device_ = ::ibv_open_device(candidate);
  if (device_ == nullptr) {
    add_reason(why_not, fmt::format("{}: cannot be opened ({})", name_, std::strerror(errno)));
    return false;
  }
  bool usable = false;
  if (::ibv_query_device(device_, &limits_) != 0) {
    add_reason(why_not, fmt::format("{}: cannot be asked ({})", name_, std::strerror(errno)));
  } else if (limits_.max_srq == 0) {
    add_reason(why_not, fmt::format("{}: has no shared receive queues", name_));
  } else {
    const int first = port != 0 ? port : 1;
    const int last = port != 0 ? port : limits_.phys_port_cnt;
    for (int p = first; p <= last && !usable; ++p) usable = take_port(p, gid_index, why_not);
  }
  if (usable) domain_ = ::ibv_alloc_pd(device_);
  if (domain_ != nullptr) return true;
  if (usable) add_reason(why_not, fmt::format("{}: no protection domain ({})", name_, std::strerror(errno)));
  ::ibv_close_device(device_);
  device_ = nullptr;
  return false;
}

bool adapter::take_port(int port, int gid_index, std::string& why_not) {
  ibv_port_attr attr{};
  const auto no = [&](std::string_view why) {
    add_reason(why_not, fmt::format("{} port {}: {}", name_, port, why));
    return false;
  };
  if (::ibv_query_port(device_, static_cast<std::uint8_t>(port), &attr) != 0) return no("there is no such port");
  if (attr.state != IBV_PORT_ACTIVE) return no(fmt::format("is {}", ::ibv_port_state_str(attr.state)));
  port_ = static_cast<std::uint8_t>(port);
  ethernet_ = attr.link_layer == IBV_LINK_LAYER_ETHERNET;
  global_ = ethernet_ || (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;  // functions may share a LID
  mtu_ = attr.active_mtu;
  most_mtu_ = attr.max_mtu;
  address_.lid = attr.lid;
  const int index = gid_index >= 0 ? gid_index : choose_gid(port, attr.gid_tbl_len);
  if (index < 0) return no("has no RoCE v2 address: give its network interface an IP address");
  if (::ibv_query_gid(device_, port_, index, &address_.gid) != 0) return no(fmt::format("has no GID {}", index));
  gid_index_ = static_cast<std::uint8_t>(index);
  return true;
}

// Chooses routable RoCE (v2), IPv4 first, since networks are configured for it.
int adapter::choose_gid(int port, int count) const {
  if (!ethernet_) return 0;
  int found = -1;
  for (int i = 0; i < count && i < 256; ++i) {
    ibv_gid_entry entry{};
    if (::ibv_query_gid_ex(device_, static_cast<std::uint32_t>(port), static_cast<std::uint32_t>(i), &entry, 0) != 0)
      continue;
    if (entry.gid_type != IBV_GID_TYPE_ROCE_V2) continue;
    if (is_ipv4(entry.gid)) return i;
    if (found < 0) found = i;
  }
  return found;
}

bool adapter::is_own(const port_address& at) const noexcept {
  return at.lid == address_.lid && std::memcmp(at.gid.raw, address_.gid.raw, sizeof at.gid.raw) == 0;
}

std::string adapter::describe() const {
  return fmt::format("{} port {} {} {}, MTU {}", name_, port_, ethernet_ ? "RoCE v2" : "InfiniBand",
                     ethernet_ ? text_of(address_.gid) : fmt::format("lid {}", address_.lid), 128 << mtu_);
}

// Software has copied the data that it acknowledges; an adapter's data may still be in flight on the bus.
abilities adapter::has() const noexcept {
  return {.atomics = limits_.atomic_cap != IBV_ATOMIC_NONE, .placed = emulated(), .ethernet = ethernet_};
}

ibv_ah_attr adapter::way_to(const port_address& to) const noexcept {
  ibv_ah_attr way{};
  way.port_num = port_;
  way.dlid = to.lid;
  const bool other_subnet = to.gid.global.subnet_prefix != address_.gid.global.subnet_prefix;
  way.is_global = global_ || other_subnet ? 1 : 0;
  way.grh.dgid = to.gid;
  way.grh.sgid_index = gid_index_;
  way.grh.hop_limit = 64;
  return way;
}

}  // namespace rma::verbs
