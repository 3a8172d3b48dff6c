// SPDX-License-Identifier: Apache-2.0
#include "boot/interfaces.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "boot/socket.hpp"
#include "rma/error.hpp"

namespace rma::boot {
namespace {

struct interface_address {
  std::string name;
  std::string address;
  bool loopback;
};

/// As text; empty for what is no IP address, or one that needs to be told the interface.
std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(address);
    return ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size()) != nullptr ? text.data() : "";
  }
  if (address->sa_family != AF_INET6) return {};
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(address);
  if (IN6_IS_ADDR_LINKLOCAL(&v6.sin6_addr)) return {};
  return ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size()) != nullptr ? text.data() : "";
}

/// The addresses of interfaces that are up; IPv4 first.
std::vector<interface_address> all_addresses() {
  ifaddrs* raw = nullptr;
  if (::getifaddrs(&raw) != 0) throw Error(status::bad_boot, "this machine does not tell its network interfaces");
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> list(raw, ::freeifaddrs);
  std::vector<interface_address> found;
  for (const ifaddrs* at = raw; at != nullptr; at = at->ifa_next) {
    const std::string text = text_of(at->ifa_addr);
    if (!text.empty() && (at->ifa_flags & IFF_UP) != 0)
      found.push_back({at->ifa_name, text, (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  std::ranges::stable_partition(found, [](const auto& a) { return a.address.find(':') == std::string::npos; });
  return found;
}

/// This host's name stands for these addresses.
std::vector<std::string> addresses_of_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (::getaddrinfo(name.data(), nullptr, &hints, &raw) != 0) return {};
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(raw, ::freeaddrinfo);
  std::vector<std::string> found;
  for (const addrinfo* at = raw; at != nullptr; at = at->ai_next) found.push_back(text_of(at->ai_addr));
  return found;
}

}  // namespace

std::string address_of_interface(const std::string& wanted) {
  const std::vector<interface_address> all = all_addresses();
  const std::vector<std::string> named = wanted.empty() ? addresses_of_name() : std::vector<std::string>{};
  const auto is_named = [&](const interface_address& a) {
    return !a.loopback && std::ranges::find(named, a.address) != named.end();
  };
  const auto is_good = [&](const interface_address& a) {
    return wanted.empty() ? !a.loopback : a.name == wanted || a.address == wanted;
  };
  auto found = std::ranges::find_if(all, is_named);
  if (found == all.end()) found = std::ranges::find_if(all, is_good);
  if (found != all.end()) return found->address;
  std::string list;
  for (const auto& each : all) list += (list.empty() ? "" : ", ") + each.name + " " + each.address;
  throw Error(status::bad_boot, (wanted.empty() ? "this host has no interface that others could reach it by"
                                                : "RMA_BOOT_INTERFACE=" + wanted + ": no such interface or address") +
                                    "; there are: " + list);
}

namespace {

/// Whether there is a way to it; nothing is sent.
bool has_way_to(int family, const sockaddr* address, socklen_t bytes) noexcept {
  const unique_fd probe(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && ::connect(probe.get(), address, bytes) == 0;
}

}  // namespace

std::string loopback_address() {
  constexpr std::uint16_t any_port = 9;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(any_port);
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (has_way_to(AF_INET, reinterpret_cast<const sockaddr*>(&v4), sizeof v4)) return "127.0.0.1";
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(any_port);
  v6.sin6_addr = in6addr_loopback;
  if (has_way_to(AF_INET6, reinterpret_cast<const sockaddr*>(&v6), sizeof v6)) return "::1";
  throw Error(status::unreachable,
              "the ranks are to reach each other by TCP, and this machine has neither 127.0.0.1 nor ::1: its loopback "
              "interface is down (ip link set lo up), or run them as one node");
}

}  // namespace rma::boot
