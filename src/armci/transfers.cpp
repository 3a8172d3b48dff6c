// SPDX-License-Identifier: Apache-2.0
#include "armci/transfers.hpp"

#include <algorithm>
#include <array>
#include <complex>
#include <cstring>

#include "armci/handles.hpp"

namespace rma::armci {
namespace {

constexpr int levels_max = ARMCI_MAX_STRIDE_LEVEL;

std::byte* moved(void* from, std::ptrdiff_t by) noexcept { return static_cast<std::byte*>(from) + by; }

/// True if the memory is mapped: then it is accessed at once. Targets do accumulates if some members are elsewhere.
bool at_once(const action& op, const spot& where) noexcept {
  if (where.in->one_node) return true;
  return op.what != kind::accumulate && where.in->window.pointer_to(where.target) != nullptr;
}

template <class T>
bool is_one(const void* scale) noexcept {
  T value;
  std::memcpy(&value, scale, sizeof(T));
  return value == T{1};
}

bool is_one(element type, const void* scale) noexcept {
  switch (type) {
    case element::i32: return is_one<int>(scale);
    case element::i64: return is_one<long>(scale);
    case element::f32: return is_one<float>(scale);
    case element::f64: return is_one<double>(scale);
    case element::c32: return is_one<std::complex<float>>(scale);
    default: return is_one<std::complex<double>>(scale);
  }
}

template <class T>
void add_scaled(std::byte* to, const std::byte* from, std::size_t bytes, const void* scale) noexcept {
  T factor{1};
  if (scale != nullptr) std::memcpy(&factor, scale, sizeof(T));
  for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T sum;
    T term;
    std::memcpy(&sum, to + i, sizeof(T));
    std::memcpy(&term, from + i, sizeof(T));
    sum = static_cast<T>(sum + factor * term);
    std::memcpy(to + i, &sum, sizeof(T));
  }
}

/// Carries out the action in memory of this process that no other process reaches.
void run_privately(const action& op, std::byte* local, std::byte* remote, std::size_t bytes) noexcept {
  switch (op.what) {
    case kind::put: std::memmove(remote, local, bytes); return;
    case kind::get: std::memmove(local, remote, bytes); return;
    case kind::accumulate: break;
  }
  switch (op.type) {
    case element::i32: return add_scaled<int>(remote, local, bytes, op.scale);
    case element::i64: return add_scaled<long>(remote, local, bytes, op.scale);
    case element::f32: return add_scaled<float>(remote, local, bytes, op.scale);
    case element::f64: return add_scaled<double>(remote, local, bytes, op.scale);
    case element::c32: return add_scaled<std::complex<float>>(remote, local, bytes, op.scale);
    default: return add_scaled<std::complex<double>>(remote, local, bytes, op.scale);
  }
}

status issue_row(const action& op, const spot& where, void* local, std::size_t bytes, std::vector<std::byte>& room) {
  if (op.what == kind::put)
    return where.in->window.try_put(std::span<const std::byte>(static_cast<std::byte*>(local), bytes), where.target,
                                    where.at);
  if (op.what == kind::get)
    return where.in->window.try_get(std::span<std::byte>(static_cast<std::byte*>(local), bytes), where.target,
                                    where.at);
  const Layout row = Layout::contiguous<std::byte>(bytes);
  return issue(op, where, local, row, row, room, nullptr);
}

[[noreturn]] void reject(const action& op, status s, const spot& where, std::size_t bytes) {
  fail_by(op.call, s,
          std::to_string(bytes) + " bytes at byte " + std::to_string(where.at) + " of the " +
              std::to_string(where.in->window.part_bytes(where.target)) + " that process " + std::to_string(op.proc) +
              " has allocated");
}

/// A strided shape without levels of no effect; the innermost ones become one row if they are contiguous.
struct normal_shape {
  explicit normal_shape(const action& op, const strided& s) {
    if (s.levels < 0 || s.levels > levels_max)
      fail(op.call, std::to_string(s.levels) + " stride levels: there are 0 to " + std::to_string(levels_max));
    row = static_cast<std::size_t>(std::max(s.counts[0], 0));
    for (int i = 0; i < s.levels; ++i) {
      const auto count = static_cast<std::size_t>(std::max(s.counts[i + 1], 0));
      if (count == 0) row = 0;
      const std::ptrdiff_t local = s.local_strides[i];
      const std::ptrdiff_t remote = s.remote_strides[i];
      if (count == 1) continue;
      if (levels == 0 && local == remote && local == static_cast<std::ptrdiff_t>(row)) {
        row *= count;
        continue;
      }
      counts[levels] = count;
      local_strides[levels] = local;
      remote_strides[levels] = remote;
      ++levels;
    }
  }

  [[nodiscard]] std::size_t bytes() const noexcept {
    std::size_t all = row;
    for (std::size_t i = 0; i < levels; ++i) all *= counts[i];
    return all;
  }

  /// Calls visit(local offset, remote offset) for each piece at `from_level` and above.
  template <class Visit>
  void for_each(std::size_t from_level, Visit&& visit) const {
    std::array<std::size_t, levels_max> index{};
    std::ptrdiff_t local = 0;
    std::ptrdiff_t remote = 0;
    for (;;) {
      visit(local, remote);
      std::size_t level = from_level;
      for (; level < levels; ++level) {
        local += local_strides[level];
        remote += remote_strides[level];
        if (++index[level] < counts[level]) break;
        local -= local_strides[level] * static_cast<std::ptrdiff_t>(counts[level]);
        remote -= remote_strides[level] * static_cast<std::ptrdiff_t>(counts[level]);
        index[level] = 0;
      }
      if (level >= levels) return;
    }
  }

  std::size_t row = 0;
  std::size_t levels = 0;
  std::array<std::size_t, levels_max> counts{};
  std::array<std::ptrdiff_t, levels_max> local_strides{};
  std::array<std::ptrdiff_t, levels_max> remote_strides{};
};

/// The innermost level needs no more memory than the Layout itself.
Layout rows_of(const normal_shape& shape, const std::array<std::ptrdiff_t, levels_max>& strides) {
  if (shape.levels == 0) return Layout::contiguous<std::byte>(shape.row);
  return Layout::vector<std::byte>(shape.counts[0], shape.row, strides[0]);
}

Layout whole_of(const normal_shape& shape, const std::array<std::ptrdiff_t, levels_max>& strides) {
  Layout made = rows_of(shape, strides);
  for (std::size_t i = 1; i < shape.levels; ++i)
    made = Layout::vector(shape.counts[i], 1, strides[i], Layout::resized(made, 0, 1));
  return made;
}

/// Issues an action that is not carried out at once.
void issue_elsewhere(state& s, const action& op, const spot& where, void* local, const Layout& local_layout,
                     const Layout& remote_layout, const ending& by) {
  if (!by.blocking) {
    s.handles->start(op, where, local, local_layout, remote_layout, by.handle);
    return;
  }
  s.keep_order(op.call, where);
  if (const status made = issue(op, where, local, local_layout, remote_layout, s.room, nullptr); !ok(made))
    reject(op, made, where, remote_layout.bytes());
  s.finish(op.call, where);
}

/// Ends an action that is carried out at once: only settings can have made it a message.
void finish(const action& op, const spot& where, status made, std::size_t bytes) {
  if (made == status::done) [[likely]]
    return;
  if (!ok(made)) reject(op, made, where, bytes);
  check(op.call, where.in->window.try_flush(where.target));
}

}  // namespace

action accumulate_of(const char* call, int proc, int armci_type, const void* scale) {
  action op{call, kind::accumulate, proc};
  switch (armci_type) {
    case ARMCI_ACC_INT: op.type = element::i32; break;
    case ARMCI_ACC_LNG: op.type = element::i64; break;
    case ARMCI_ACC_FLT: op.type = element::f32; break;
    case ARMCI_ACC_DBL: op.type = element::f64; break;
    case ARMCI_ACC_CPL: op.type = element::c32; break;
    case ARMCI_ACC_DCP: op.type = element::c64; break;
    default: fail(call, "there is no type " + std::to_string(armci_type) + " of accumulates");
  }
  op.scale = scale == nullptr || is_one(op.type, scale) ? nullptr : scale;
  return op;
}

status issue(const action& op, const spot& where, void* local, const Layout& local_layout, const Layout& remote_layout,
             std::vector<std::byte>& room, Request* request) {
  Window<std::byte>& w = where.in->window;
  auto* const bytes = static_cast<std::byte*>(local);
  switch (op.what) {
    case kind::put:
      return request == nullptr ? w.try_put(bytes, local_layout, where.target, where.at, remote_layout)
                                : w.try_rput(bytes, local_layout, where.target, where.at, remote_layout, *request);
    case kind::get:
      return request == nullptr ? w.try_get(bytes, local_layout, where.target, where.at, remote_layout)
                                : w.try_rget(bytes, local_layout, where.target, where.at, remote_layout, *request);
    case kind::accumulate: break;
  }
  if (op.scale == nullptr) {
    return request == nullptr
               ? w.accumulate_as(op.type, rma::sum, local, local_layout, where.target, where.at, remote_layout)
               : w.raccumulate_as(op.type, rma::sum, local, local_layout, where.target, where.at, remote_layout,
                                  *request);
  }
  if (room.size() < local_layout.bytes()) room.resize(local_layout.bytes());
  return request == nullptr ? w.accumulate_scaled_as(op.type, op.scale, local, local_layout, where.target, where.at,
                                                     remote_layout, room)
                            : w.raccumulate_scaled_as(op.type, op.scale, local, local_layout, where.target, where.at,
                                                      remote_layout, room, *request);
}

void transfer(state& s, const action& op, void* local, void* remote, std::size_t bytes, const ending& by) {
  if (bytes == 0) return;
  const spot where = s.find(op.call, op.proc, remote, bytes);
  if (where.in == nullptr) return run_privately(op, moved(local, 0), moved(remote, 0), bytes);
  if (at_once(op, where)) [[likely]] {
    s.keep_order(op.call, where);
    return finish(op, where, issue_row(op, where, local, bytes, s.room), bytes);
  }
  const Layout row = Layout::contiguous<std::byte>(bytes);
  issue_elsewhere(s, op, where, local, row, row, by);
}

void transfer(state& s, const action& op, void* local, void* remote, const strided& given, const ending& by) {
  const normal_shape shape(op, given);
  if (shape.bytes() == 0) return;
  const spot where = s.find(op.call, op.proc, remote, shape.bytes());
  if (where.in == nullptr) {
    shape.for_each(0, [&](std::ptrdiff_t here, std::ptrdiff_t there) {
      run_privately(op, moved(local, here), moved(remote, there), shape.row);
    });
    return;
  }
  if (!at_once(op, where)) {
    issue_elsewhere(s, op, where, local, whole_of(shape, shape.local_strides), whole_of(shape, shape.remote_strides),
                    by);
    return;
  }
  s.keep_order(op.call, where);
  const Layout local_rows = rows_of(shape, shape.local_strides);
  const Layout remote_rows = rows_of(shape, shape.remote_strides);
  shape.for_each(1, [&](std::ptrdiff_t here, std::ptrdiff_t there) {
    const spot at{where.in, where.target, where.at + static_cast<std::size_t>(there)};
    finish(op, at, issue(op, at, moved(local, here), local_rows, remote_rows, s.room, nullptr), remote_rows.bytes());
  });
}

namespace {

/// Segments of one allocation that follow each other in the list: they become one operation.
class segment_run {
 public:
  segment_run(const action& op, std::size_t bytes) : op_(op), bytes_(bytes) {}
  void add(const spot& where, void* local) {
    if (local_.empty()) {
      first_ = where;
      base_ = static_cast<std::byte*>(local);
    }
    local_.push_back(static_cast<std::byte*>(local) - base_);
    remote_.push_back(static_cast<std::ptrdiff_t>(where.at) - static_cast<std::ptrdiff_t>(first_.at));
  }
  [[nodiscard]] bool takes(const spot& where) const noexcept { return local_.empty() || where.in == first_.in; }
  void issue(state& s, const ending& by) {
    if (local_.empty()) return;
    issue_elsewhere(s, op_, first_, base_, Layout::indexed<std::byte>(bytes_, local_),
                    Layout::indexed<std::byte>(bytes_, remote_), by);
    local_.clear();
    remote_.clear();
  }

 private:
  action op_;
  std::size_t bytes_;
  spot first_{};
  std::byte* base_ = nullptr;
  std::vector<std::ptrdiff_t> local_;
  std::vector<std::ptrdiff_t> remote_;
};

void transfer_segments(state& s, const action& op, const armci_giov_t& list, const ending& by) {
  if (list.bytes <= 0) return;
  const auto bytes = static_cast<std::size_t>(list.bytes);
  segment_run run(op, bytes);
  for (int i = 0; i < list.ptr_array_len; ++i) {
    void* const local = op.what == kind::get ? list.dst_ptr_array[i] : list.src_ptr_array[i];
    void* const remote = op.what == kind::get ? list.src_ptr_array[i] : list.dst_ptr_array[i];
    const spot where = s.find(op.call, op.proc, remote, bytes);
    if (where.in == nullptr) {
      run_privately(op, moved(local, 0), moved(remote, 0), bytes);
    } else if (at_once(op, where)) {
      s.keep_order(op.call, where);
      finish(op, where, issue_row(op, where, local, bytes, s.room), bytes);
    } else {
      if (!run.takes(where)) run.issue(s, by);
      run.add(where, local);
    }
  }
  run.issue(s, by);
}

}  // namespace

void transfer(state& s, const action& op, std::span<const armci_giov_t> segments, const ending& by) {
  for (const armci_giov_t& list : segments) transfer_segments(s, op, list, by);
}

}  // namespace rma::armci
