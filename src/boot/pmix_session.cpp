// SPDX-License-Identifier: Apache-2.0
#include "boot/pmix_session.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <memory>

#include "rma/error.hpp"

namespace rma::boot {
namespace {

constexpr const char* round_key = "rma.round";  // of this process: how many runtimes have met

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

void pmix_session::refuse(const char* what, pmix_status_t why) const {
  throw Error(status::bad_boot, std::string("PMIx cannot ") + what + " (" + pmix_.PMIx_Error_string(why) +
                                    "); is this process a rank of mpirun, or of srun --mpi=pmix?");
}

void pmix_session::check(const char* what, pmix_status_t s) const {
  if (s != PMIX_SUCCESS) refuse(what, s);
}

int pmix_session::number(const char* key) const {
  pmix_proc_t job = me_;
  job.rank = PMIX_RANK_WILDCARD;
  pmix_value_t* raw = nullptr;
  check(key, pmix_.PMIx_Get(&job, key, nullptr, 0, &raw));
  const value_ptr found(raw);
  if (found->type != PMIX_UINT32) refuse(key, PMIX_ERR_TYPE_MISMATCH);
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

std::string pmix_session::from_rank_0(const std::string& text, int timeout_s) {
  const std::string key = "rma.job." + std::to_string(next_round());
  if (rank() == 0) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = const_cast<char*>(text.c_str());  // copied
    check("store a value", pmix_.PMIx_Put(PMIX_GLOBAL, key.c_str(), &value));
    check("send a value", pmix_.PMIx_Commit());
  }
  pmix_info_t how[] = {directive(PMIX_COLLECT_DATA), directive(PMIX_TIMEOUT)};
  how[1].value.type = PMIX_INT;
  how[1].value.data.integer = timeout_s;
  check("wait for all ranks", pmix_.PMIx_Fence(nullptr, 0, how, 2));
  pmix_proc_t first = me_;
  first.rank = 0;
  pmix_value_t* raw = nullptr;
  check("get a value of rank 0", pmix_.PMIx_Get(&first, key.c_str(), nullptr, 0, &raw));
  const value_ptr found(raw);
  if (found->type != PMIX_STRING) refuse("get a value of rank 0", PMIX_ERR_TYPE_MISMATCH);
  return found->data.string;
}

void pmix_session::abort(int code, std::string_view message) noexcept try {
  const std::string text(message);
  (void)pmix_.PMIx_Abort(code, text.c_str(), nullptr, 0);
} catch (...) {  // out of memory: the end of this process is news enough
}

std::unique_ptr<introduction> introduce_by_pmix() { return std::make_unique<pmix_session>(); }

}  // namespace rma::boot
