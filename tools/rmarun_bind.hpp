// SPDX-License-Identifier: Apache-2.0
/// \file
/// Binding ranks to cores, by hwloc.
#pragma once

#include <memory>

struct hwloc_obj;
struct hwloc_topology;

namespace rma::launcher {

/// The cores that rmarun itself may use.
class core_binding {
 public:
  core_binding();

  /// 0 if they cannot be found out.
  [[nodiscard]] int cores() const noexcept { return cores_; }
  /// Binds the calling process to core `rank` modulo their number. False if that fails.
  bool bind_self(int rank) const;
  /// The cores of one cache, or else of one memory or socket, in which that core lies: 1 ...; 0 if all cores are such a
  /// group.
  [[nodiscard]] int group_of(int rank) const;

 private:
  [[nodiscard]] hwloc_obj* core_of(int rank) const;
  struct destroyer {
    void operator()(hwloc_topology* topology) const;
  };
  std::unique_ptr<hwloc_topology, destroyer> topology_;
  int cores_ = 0;
};

}  // namespace rma::launcher
