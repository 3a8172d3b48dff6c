// SPDX-License-Identifier: Apache-2.0
/// \file
/// Exchanges with partners in the three forms: messages, one-sided with each put waited for, and one-sided with puts
/// that tell their arrival while the origin goes on. A kernel says the same for all of them:
///
///   exchange.expect(slot, partner, count);
///   exchange.send(slot, partner, data);            // more than one part if it likes
///   const double* from = exchange.receive(slot, partner, count);
#pragma once

#include "kernel.hpp"

namespace nas {

/// A slot is a place for incoming data; all ranks have the same slots. A rank answers data that it has received: it
/// sends for the next time only after it has received this time's data from the same partner. So a rank is at
/// most one time ahead, and two buffers for each slot, used in turn, are enough.
class Exchange {
 public:
  /// Collective. `counts`: elements in each slot at most.
  Exchange(Run& run, const std::vector<std::size_t>& counts) : run_(run) {
    std::size_t total = 0;
    for (const std::size_t count : counts) {
      slots_.emplace_back();
      slots_.back().at[0] = total;
      slots_.back().at[1] = total + count;
      total += 2 * count;
    }
    if (run.form() == Form::messages) {
      buffer_.resize(total);
      return;
    }
    rma::Hints hints;
    hints.signals = static_cast<unsigned>(2 * slots_.size());
    window_ = rma::Window<double>::allocate(run.world(), total, hints);
    if (const rma::status s = window_->lock_all_nothrow(); !rma::ok(s)) throw std::runtime_error("lock_all failed");
  }
  ~Exchange() {
    if (window_) (void)window_->try_unlock_all();
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// `count` elements will come from `partner`, in one message; with puts nothing has to be said.
  void expect(int slot, int partner, std::size_t count) {
    if (window_) return;
    Slot& s = slots_[index(slot)];
    s.incoming = run_.world().irecv(std::span(&buffer_[s.at[s.received % 2]], count), partner, slot);
  }
  /// Sends elements to places from `at` on of the partner's slot.
  void send(int slot, int partner, std::span<const double> data, std::size_t at = 0) {
    Slot& s = slots_[index(slot)];
    if (!window_) {
      run_.waiting([&] { run_.world().send(data, partner, slot); });
    } else if (run_.form() == Form::blocking) {
      run_.waiting([&] {
        window_->put(data, partner, s.at[s.sent % 2] + at);
        window_->flush(partner);
        window_->put_signal({}, partner, 0, signal_of(slot, s.sent));
      });
    } else {
      window_->put_signal(data, partner, s.at[s.sent % 2] + at, signal_of(slot, s.sent));
    }
  }
  /// The same of what `layout` selects.
  void send(int slot, int partner, const double* data, const rma::Layout& layout) {
    Slot& s = slots_[index(slot)];
    const auto placed = rma::Layout::contiguous<double>(layout.bytes() / sizeof(double));
    if (!window_) {
      run_.waiting([&] { run_.world().send(data, layout, partner, slot); });
    } else if (run_.form() == Form::blocking) {
      run_.waiting([&] {
        window_->put(data, layout, partner, s.at[s.sent % 2], placed);
        window_->flush(partner);
        window_->put_signal({}, partner, 0, signal_of(slot, s.sent));
      });
    } else {
      window_->put_signal(data, layout, partner, s.at[s.sent % 2], placed, signal_of(slot, s.sent));
    }
  }
  /// Waits for the partner's data, which come in `parts` parts. They stay until the next receive in this slot but one.
  /// Afterwards buffers that were sent to `partner` may be changed.
  [[nodiscard]] const double* receive(int slot, int partner, unsigned parts = 1) {
    Slot& s = slots_[index(slot)];
    ++s.sent;
    const std::size_t at = s.at[s.received % 2];
    run_.waiting([&] {
      if (window_) {
        window_->wait_signal(signal_of(slot, s.received), parts, partner);
        window_->flush_local(partner);
        return;
      }
      s.incoming.wait();
    });
    ++s.received;
    return window_ ? &(*window_)[at] : &buffer_[at];
  }

 private:
  struct Slot {
    std::size_t at[2] = {0, 0};
    std::size_t sent = 0, received = 0;
    rma::MessageRequest incoming;
  };

  static std::size_t index(int slot) { return static_cast<std::size_t>(slot); }
  static unsigned signal_of(int slot, std::size_t time) { return static_cast<unsigned>(2 * slot) + time % 2; }

  Run& run_;
  std::vector<Slot> slots_;
  std::vector<double> buffer_;
  std::optional<rma::Window<double>> window_;
};

}  // namespace nas
