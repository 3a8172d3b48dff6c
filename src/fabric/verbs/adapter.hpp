// SPDX-License-Identifier: Apache-2.0
/// \file
/// The RDMA device that a rank has opened: its port and its address.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fabric/verbs/abilities.hpp"

namespace rma::verbs {

/// Throws Error(unreachable): the device lacks a resource that the library needs; errno has the reason.
[[noreturn]] void refuse_without(const char* what);

/// The source address of a device's packets. RoCE uses the GID, InfiniBand the LID (and the GID across routers).
struct port_address {
  ibv_gid gid{};
  std::uint16_t lid = 0;
};

class adapter {
 public:
  /// Opens the device of RMA_DEVICE, `name[:port[:gid index]]`, or the first port that is active and has an address: on
  /// Ethernet a RoCE v2 address, preferably of IPv4. Throws Error(unreachable) with the fault of each device.
  explicit adapter(const std::string& wanted);
  ~adapter();
  adapter(const adapter&) = delete;
  adapter& operator=(const adapter&) = delete;

  [[nodiscard]] ibv_context* device() const noexcept { return device_; }
  [[nodiscard]] ibv_pd* domain() const noexcept { return domain_; }
  [[nodiscard]] const ibv_device_attr& limits() const noexcept { return limits_; }
  [[nodiscard]] std::uint8_t port() const noexcept { return port_; }
  /// The path MTU of the network.
  [[nodiscard]] ibv_mtu mtu() const noexcept { return mtu_; }
  /// The MTU of packets to this port itself. Linux's software applies the network's MTU to them as well, but they never
  /// reach the network.
  [[nodiscard]] ibv_mtu loop_back_mtu() const noexcept { return emulated() ? most_mtu_ : mtu_; }
  [[nodiscard]] bool is_own(const port_address& at) const noexcept;
  [[nodiscard]] port_address address() const noexcept { return address_; }
  /// True for a device in software, whose queue entries are large.
  [[nodiscard]] bool emulated() const noexcept { return limits_.vendor_id == 0xffffff; }
  [[nodiscard]] abilities has() const noexcept;
  /// Device, port and address in one line, for rma-info.
  [[nodiscard]] std::string describe() const;
  /// The address vector for packets to `to`.
  [[nodiscard]] ibv_ah_attr way_to(const port_address& to) const noexcept;

 private:
  bool open(ibv_device* candidate, int port, int gid_index, std::string& why_not);
  bool take_port(int port, int gid_index, std::string& why_not);
  [[nodiscard]] int choose_gid(int port, int count) const;

  ibv_context* device_ = nullptr;
  ibv_pd* domain_ = nullptr;
  ibv_device_attr limits_{};
  std::uint8_t port_ = 0;
  std::uint8_t gid_index_ = 0;
  bool ethernet_ = false;
  bool global_ = false;  ///< the port requires a global routing header
  ibv_mtu mtu_ = IBV_MTU_1024;
  ibv_mtu most_mtu_ = IBV_MTU_1024;  ///< the largest of the device
  port_address address_;
  std::string name_;
};

}  // namespace rma::verbs
