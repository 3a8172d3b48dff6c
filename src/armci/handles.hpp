// SPDX-License-Identifier: Apache-2.0
/// \file
/// Handles of non-blocking operations. An armci_hdl_t has room for two numbers only: the first is that of an entry
/// here, the other contains whether it aggregates, and the use of the entry to which it belongs.
///
/// An operation on an aggregate handle is held until a wait on the handle, or until an operation that does not match:
/// matching ones are issued as one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "armci/transfers.hpp"

namespace rma::armci {

/// Operations of one kind and target that are issued as one.
class gathered_operations {
 public:
  gathered_operations(const action& op, const spot& where);
  /// Returns false if the operation does not match, or has parts that would be cut.
  [[nodiscard]] bool takes(const action& op, const spot& where) const noexcept;
  void add(const spot& where, void* local, const Layout& local_layout, const Layout& remote_layout);
  status issue(std::vector<std::byte>& room, Request& request);
  [[nodiscard]] allocation* in() const noexcept { return first_.in; }

 private:
  struct part {
    std::ptrdiff_t local;
    std::ptrdiff_t remote;
    std::size_t bytes;
  };
  action op_;
  std::array<std::byte, 16> scale_{};  ///< a copy: the caller's may be gone by then
  spot first_;
  std::byte* base_ = nullptr;
  std::vector<part> parts_;
};

class handle_table {
 public:
  /// Issues the operation with a handle; null: the implicit one.
  void start(const action& op, const spot& where, void* local, const Layout& local_layout, const Layout& remote_layout,
             armci_hdl_t* handle);
  /// Stores a value that a non-blocking put may read later.
  void* keep_value(const void* value, std::size_t bytes, armci_hdl_t* handle);

  void wait(const char* call, armci_hdl_t* handle);
  bool test(const char* call, armci_hdl_t* handle);
  void wait_implicit(const char* call);
  /// Complete all operations of all handles: before `gone` is freed, and at the end.
  void complete(const char* call, const allocation& gone);
  void complete_all(const char* call);

 private:
  struct entry {
    std::vector<Request> requests;
    std::vector<std::vector<std::byte>> rooms;  ///< for the products of accumulates
    std::deque<std::array<std::byte, 8>> values;
    std::unique_ptr<gathered_operations> gathered;
    unsigned generation = 1;
    bool used = false;
  };
  entry& of(armci_hdl_t* handle);
  entry* find(const armci_hdl_t* handle) noexcept;
  void keep(entry& e, const char* call, Request request, std::vector<std::byte> room);
  void send_gathered(entry& e, const char* call);
  void finish(entry& e, const char* call);
  void release(armci_hdl_t* handle);

  entry implicit_;
  std::deque<entry> entries_;
  std::vector<std::size_t> free_;
};

/// True if operations on the handle are gathered.
bool aggregates(const armci_hdl_t* handle) noexcept;

}  // namespace rma::armci
