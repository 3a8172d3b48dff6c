// SPDX-License-Identifier: Apache-2.0
#include "boot/pmix_session.hpp"

#include <dlfcn.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "rma/error.hpp"

namespace rma::boot {
namespace {

constexpr const char* round_key = "rma.round";  // value: number of runtimes that this process has started

struct value_deleter {
  void operator()(pmix_value_t* v) const noexcept {
    if (v->type == PMIX_STRING) std::free(v->data.string);
    std::free(v);
  }
};
using value_ptr = std::unique_ptr<pmix_value_t, value_deleter>;

pmix_value_t value_of(std::uint32_t number) {
  pmix_value_t made{};
  made.type = PMIX_UINT32;
  made.data.uint32 = number;
  return made;
}

/// All ranks have come to a fence, or will not. PMIx's thread has a share of it: it may report that after the
/// wait has ended.
struct exchange_state {
  pmix_info_t how[2] = {directive(PMIX_COLLECT_DATA), directive(PMIX_TIMEOUT)};
  std::mutex lock;  ///< guards the members below
  std::condition_variable ended;
  bool over = false;
  pmix_status_t outcome = PMIX_SUCCESS;
};
using shared_meeting = std::shared_ptr<exchange_state>;

/// Called by PMIx's thread; `mine` is its share.
void end_meeting(pmix_status_t outcome, void* mine) {
  const std::unique_ptr<shared_meeting> share(static_cast<shared_meeting*>(mine));
  exchange_state& all = **share;
  const std::lock_guard hold(all.lock);
  all.outcome = outcome;
  all.over = true;
  all.ended.notify_all();
}

// One for each session: PMIx counts how often it was started.
void finalize_at_exit() {
  void* const library = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return;
  if (const auto finalize = reinterpret_cast<decltype(&::PMIx_Finalize)>(::dlsym(library, "PMIx_Finalize")))
    (void)finalize(nullptr, 0);
}

}  // namespace

pmix_session::pmix_session() {
  check("start", pmix_.PMIx_Init(&me_, nullptr, 0));
  (void)std::atexit(finalize_at_exit);
  size_ = number(PMIX_JOB_SIZE);
}

void pmix_session::reject(const char* what, pmix_status_t why) const {
  throw Error(status::bad_boot, std::string("PMIx cannot ") + what + " (" + pmix_.PMIx_Error_string(why) +
                                    "); is this process a rank of mpirun, or of srun --mpi=pmix?");
}

void pmix_session::check(const char* what, pmix_status_t s) const {
  if (s != PMIX_SUCCESS) reject(what, s);
}

int pmix_session::number(const char* key) const {
  pmix_proc_t job = me_;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* raw = nullptr;
  check(key, pmix_.PMIx_Get(&job, key, nullptr, 0, &raw));
  const value_ptr found(raw);
  if (found->type != PMIX_UINT32) reject(key, PMIX_ERR_TYPE_MISMATCH);
  return static_cast<int>(found->data.uint32);
}

// Kept where only this process looks: all ranks make their runtimes in the same order.
unsigned pmix_session::next_round() const {
  const pmix_info_t here = directive(PMIX_OPTIONAL);
  pmix_value_t* raw = nullptr;
  unsigned last = 0;
  if (pmix_.PMIx_Get(&me_, round_key, &here, 1, &raw) == PMIX_SUCCESS) {
    const value_ptr found(raw);
    last = found->data.uint32;
  }
  pmix_value_t next = value_of(last + 1);
  check("store a value", pmix_.PMIx_Put(PMIX_INTERNAL, round_key, &next));
  return last + 1;
}

/// Launchers may ignore the time-out that they are given.
void pmix_session::meet(int timeout_s) const {
  const auto all = std::make_shared<exchange_state>();
  all->how[1].value.type = PMIX_INT;
  all->how[1].value.data.integer = timeout_s;
  auto share = std::make_unique<shared_meeting>(all);
  const pmix_status_t begun = pmix_.PMIx_Fence_nb(nullptr, 0, all->how, 2, end_meeting, share.get());
  if (begun == PMIX_OPERATION_SUCCEEDED) return;  // and PMIx does not call
  check("wait for all ranks", begun);
  (void)share.release();
  std::unique_lock hold(all->lock);
  const bool in_time = all->ended.wait_for(hold, std::chrono::seconds(timeout_s), [&all] { return all->over; });
  if (!in_time || all->outcome == PMIX_ERR_TIMEOUT) {
    throw Error(status::bad_boot, "rank " + std::to_string(rank()) + " of " + std::to_string(size_) +
                                      " has waited for " + std::to_string(timeout_s) +
                                      " s (RMA_BOOT_TIMEOUT_MS) for the other ranks to come to PMIx; is one of them "
                                      "stopped? PMIx does not say which");
  }
  check("wait for all ranks", all->outcome);
}

std::string pmix_session::from_rank_0(const std::string& text, int timeout_s) {
  const std::string key = "rma.job." + std::to_string(next_round());
  if (rank() == 0) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = const_cast<char*>(text.c_str());  // copied
    check("store a value", pmix_.PMIx_Put(PMIX_GLOBAL, key.c_str(), &value));
    check("send a value", pmix_.PMIx_Commit());
  }
  meet(timeout_s);
  pmix_proc_t first = me_;
  first.rank = 0;
  pmix_value_t* raw = nullptr;
  check("get a value of rank 0", pmix_.PMIx_Get(&first, key.c_str(), nullptr, 0, &raw));
  const value_ptr found(raw);
  if (found->type != PMIX_STRING) reject("get a value of rank 0", PMIX_ERR_TYPE_MISMATCH);
  return found->data.string;
}

void pmix_session::abort(int code, std::string_view message) noexcept try {
  const std::string text(message);
  (void)pmix_.PMIx_Abort(code, text.c_str(), nullptr, 0);
} catch (...) {  // out of memory: the end of this process is news enough
}

std::unique_ptr<introduction> introduce_by_pmix() { return std::make_unique<pmix_session>(); }

}  // namespace rma::boot
